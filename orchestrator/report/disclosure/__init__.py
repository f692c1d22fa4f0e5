"""The report of a disclosure audit (``audit.kind: gnq``): page, figures, terminal tables, Markdown."""
