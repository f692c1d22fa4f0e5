"""The typed rows of a GNQ result and their summary."""
