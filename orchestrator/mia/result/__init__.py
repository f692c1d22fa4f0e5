"""The typed rows of a membership result and their summary."""
