"""The stage bodies of the audit ``tmia``."""
