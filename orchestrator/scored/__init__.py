"""``orch score``: scores from elsewhere, read from a file, judged by the statistics of our own audits."""
