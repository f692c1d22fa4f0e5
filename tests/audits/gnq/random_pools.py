"""Random answers of twins and shadows of a pool (``audits.conformance.gnq_answers``)."""

from audits.conformance.gnq_answers import CLASSES, LABELS, POINTS, drawn, pool

__all__ = ["CLASSES", "LABELS", "POINTS", "drawn", "pool"]
