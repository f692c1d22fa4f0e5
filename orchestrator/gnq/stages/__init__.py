"""The stage bodies of the audit ``gnq``."""
