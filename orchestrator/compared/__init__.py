"""``orch compare``: which differences between finished runs are real."""
