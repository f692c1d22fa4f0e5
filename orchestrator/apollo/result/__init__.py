"""The typed rows of an Apollo result and their summary."""
