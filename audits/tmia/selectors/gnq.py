"""Points whose gradients the reference models' training points do not make up."""

from __future__ import annotations

from dataclasses import dataclass

from audits.errors import BadInput
from audits.tmia.selectors.base import SELECTORS, Case, Scores, Selector


@SELECTORS.register("gnq")
@dataclass(frozen=True)
class GradientUniqueness(Selector):
    """Mean ½·log2(1 + GNQ) of the candidate's gradient beside the training points of reference models, in bits.

    Not of the paper: gradient uniqueness (arXiv 2510.10902) as triage, before any target is asked; the attacker's own
    models are read as white boxes. ``candidate_uniqueness`` says what is measured.
    """

    def select(self, case: Case) -> Scores:
        if case.uniqueness is None:
            raise BadInput("selector gnq reads the uniqueness of candidates under reference models, but none is given")
        return Scores(case.uniqueness, case.reference_uniqueness)
