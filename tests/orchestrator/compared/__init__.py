"""Finished runs are compared."""
