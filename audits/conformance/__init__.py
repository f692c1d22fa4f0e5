"""What every component must keep to, as checks that our own ones pass in tests and users' own by ``orch check``."""
