"""The stage bodies of the audit ``mia``."""
