"""``orch compare``: which differences between finished runs are statistically significant."""
