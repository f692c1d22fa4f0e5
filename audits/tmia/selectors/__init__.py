"""Selectors of vulnerable candidates by name, one file each."""

from audits.tmia.selectors.base import SELECTORS, Case, Scores, Selector, chosen

__all__ = ["SELECTORS", "Case", "Scores", "Selector", "chosen"]
