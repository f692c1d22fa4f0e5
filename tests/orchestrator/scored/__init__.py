"""Scores from elsewhere are read, judged, shown and refused."""
