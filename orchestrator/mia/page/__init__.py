"""The page of a membership run: tables, figures and words."""
