"""The page of a GNQ audit of a given model."""
