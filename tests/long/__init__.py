"""Tests of minutes, on clusters of hosts that are made of namespaces: ``pytest -m long tests/long``."""
