"""The report of a membership audit (``audit.kind: tmia``): page, figures, terminal tables, Markdown."""
