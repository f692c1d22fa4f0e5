"""The stage bodies of the audit ``apollo``, a file each."""
