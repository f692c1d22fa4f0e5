"""The page of a comparison: table, figure, words."""
