"""Artefacts under content-addressed keys, on a disk or an object store."""
