"""The typed rows of a TMIA result and their summary."""
