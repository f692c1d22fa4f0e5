"""Documents that decide the inversion of models and of gradients, beside the models themselves: parts of jobs' own."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orchestrator.engine.jobs.keys import digest

if TYPE_CHECKING:
    from orchestrator.gnq.design import GnqDesign


def asked_of(design: GnqDesign, pool: int) -> dict[str, Any]:
    """Return which points of a pool can be sought, in what models, by what seed."""
    return {
        "data": design.data.fingerprint,
        "classes": list(design.classes),
        "model": design.plan.model.model_dump(mode="json"),
        "pool": digest(design.drawn.pools[pool]),
        "halves": digest(design.halves(design.of(pool, "target"))),
        "seed": design.plan.seed,
        "unit": pool,
    }


def sought(design: GnqDesign, pool: int) -> dict[str, Any]:
    """Return what decides which images of a pool are sought in models, and how."""
    asked = design.plan.audit.inversion
    assert asked is not None, "a plan without inversion seeks no images"
    return {**asked_of(design, pool), "images": asked.images, "search": asdict(asked.settings)}


def matched(design: GnqDesign, pool: int, place: int) -> dict[str, Any]:
    """Return what decides which points of a pool are sought from their gradients at a checkpoint, and how."""
    asked = design.plan.audit.gradient_inversion
    assert asked is not None, "a plan without gradient inversion seeks no points"
    return {
        **asked_of(design, pool),
        "step": design.looks[place],
        "points": asked.points,
        "batches": list(asked.batches),
        "methods": list(asked.methods),
        "search": asdict(asked.settings),
        "chunk": design.plan.compute.chunk,
    }
