"""A kind of audit beside those of the package, as small as an honest one can be; one line of a test registers it."""
