"""The page of a GNQ run: tables, figures and words."""
