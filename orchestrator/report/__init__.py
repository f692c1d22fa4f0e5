"""From a finished run's files (result.json, scores.parquet) to tables, figures and one HTML page."""
