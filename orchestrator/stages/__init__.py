"""The body of each stage: read artefacts, call the audits, return the files of one artefact."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.stages.models import METRICS, train, unlearn, utility
from orchestrator.stages.radii import RADII, radii
from orchestrator.stages.ranking import RANKING, rank
from orchestrator.stages.scoring import DETAILS, SCORES, score
from orchestrator.stages.searching import EVIDENCE, TRACE, search, trace
from orchestrator.stages.workshop import WEIGHTS, Body, OpenWorkshops, Workshop

__all__ = [
    "DETAILS",
    "EVIDENCE",
    "METRICS",
    "RADII",
    "RANKING",
    "SCORES",
    "TRACE",
    "WEIGHTS",
    "OpenWorkshops",
    "Workshop",
    "bodies",
]


def bodies() -> Mapping[str, Body]:
    """Return stage → body."""
    from orchestrator.membership.judging import judge
    from orchestrator.membership.selecting import select
    from orchestrator.membership.stages import ask, fit

    return {
        "train": train,
        "unlearn": unlearn,
        "utility": utility,
        "rank": rank,
        "trace": trace,
        "search": search,
        "score": score,
        "radii": radii,
        "fit": fit,
        "select": select,
        "ask": ask,
        "judge": judge,
    }
