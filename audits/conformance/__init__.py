"""Checks of what every component must keep to: our own pass them in tests, users' own by ``orch check``."""
