"""Audits from Python, for notebooks and scripts: ``orchestrator.audit("my.yaml")`` returns a ``Report``."""

from audits.own.libraries import guard_imports

guard_imports()
