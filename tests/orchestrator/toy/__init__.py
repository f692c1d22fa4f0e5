"""A fourth kind of audit, as small as an honest one can be; one line of a test registers it."""
