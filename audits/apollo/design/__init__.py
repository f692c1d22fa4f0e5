"""The design of an Apollo audit: training sets of targets and shadows, candidates, forget sets."""
