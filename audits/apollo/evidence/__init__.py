"""Kinds of evidence by name, one file each."""

from audits.apollo.evidence.base import KINDS, Case, Group, Kind, Questions, in_order
from audits.apollo.evidence.parts import Evidence, Part, Posteriors, Walks
from audits.apollo.evidence.settings import SearchSettings
from audits.lazy import lazily

__all__ = [
    "KINDS",
    "Case",
    "Evidence",
    "Group",
    "Kind",
    "Part",
    "Posteriors",
    "Questions",
    "SearchSettings",
    "Walks",
    "in_order",
]
__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.apollo.evidence.boundary": ("Distances",),
        "audits.apollo.evidence.ladder": ("Positions",),
        "audits.apollo.evidence.logits": ("Logits",),
        "audits.apollo.evidence.plus": ("Standings",),
        "audits.apollo.evidence.population": ("Population",),
    },
)
