"""Plan files: reading, overriding, strict sections, messages."""
