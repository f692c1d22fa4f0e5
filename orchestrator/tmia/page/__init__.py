"""The page of a TMIA run: tables, figures and words."""
