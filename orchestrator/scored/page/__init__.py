"""The page of scores from elsewhere: tables, figures, words."""
