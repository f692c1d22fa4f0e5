"""Speed measured: each module is a command (``python -m benchmarks.NAME``) that prints one JSON record."""
