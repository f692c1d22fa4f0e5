"""The body of each stage: read artefacts, call the audits, return the files of one artefact."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.jobs import Job
from orchestrator.stages.disclosure import DISCLOSURE, disclosure, rank_exposed
from orchestrator.stages.models import METRICS, train, unlearn, utility
from orchestrator.stages.radii import RADII, radii
from orchestrator.stages.ranking import RANKING, rank
from orchestrator.stages.scoring import DETAILS, SCORES, score
from orchestrator.stages.searching import EVIDENCE, TRACE, search, trace
from orchestrator.stages.workshop import WEIGHTS, Body, OpenWorkshops, Workshop

__all__ = [
    "DETAILS",
    "DISCLOSURE",
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


def ranked(shop: Workshop, job: Job) -> Mapping[str, bytes]:
    """Rank the points of the pool by what the plan asks about: memorised or exposed ones."""
    return (rank_exposed if shop.plan.split.points == "exposed" else rank)(shop, job)


def bodies() -> Mapping[str, Body]:
    """Return stage → body."""
    from orchestrator.disclosure.assessing import assess
    from orchestrator.disclosure.defending import defend
    from orchestrator.disclosure.inverting import invert
    from orchestrator.disclosure.stages import look, watch
    from orchestrator.membership.judging import judge
    from orchestrator.membership.selecting import select
    from orchestrator.membership.stages import ask, fit

    return {
        "train": train,
        "unlearn": unlearn,
        "utility": utility,
        "rank": ranked,
        "trace": trace,
        "search": search,
        "score": score,
        "radii": radii,
        "disclosure": disclosure,
        "fit": fit,
        "select": select,
        "ask": ask,
        "judge": judge,
        "watch": watch,
        "look": look,
        "defend": defend,
        "invert": invert,
        "assess": assess,
    }
