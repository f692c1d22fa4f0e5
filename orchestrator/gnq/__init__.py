"""The audit ``gnq``: gradient uniqueness and the defences against it, from a plan to its scores."""
