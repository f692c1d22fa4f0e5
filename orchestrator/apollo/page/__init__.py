"""The page of an Apollo run: tables, figures and words."""
