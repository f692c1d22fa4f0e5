"""Audits from Python, for notebooks and scripts: ``orchestrator.audit("my.yaml")`` returns a ``Report``."""
