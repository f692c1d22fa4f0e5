"""Stage defend: the model that an arm publishes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.disclosure.plan import NONE
from orchestrator.disclosure.stages import finished, fresh, scheduler, seed_of, tensors, trace_of
from orchestrator.jobs import Job
from orchestrator.stages.models import METRICS
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from audits.disclosure.accumulate import Trace
    from orchestrator.disclosure.layout import Watched
    from orchestrator.disclosure.plan import Defence

DIVERGED = "diverged"
"""What a stage says in place of a model, or of what attacks make of models: how their training ended."""


def defend(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Train one model again behind a defence: without the points on top, with noise on them, or with DP-SGD.

    A training that diverges leaves its error in place of the model: it costs its arm, not the others.
    """
    from audits.disclosure.noise import fit_noised, noise_scale
    from audits.training.loop import fit

    layout = scheduler(shop)
    model, defence = layout.models[job.member], layout.plan.arms[job.label]
    assert defence is not None, "arm none has no job of its own"
    kept = model.half
    recipe, found = defence.recipe or layout.plan.recipe, fresh(shop, model.retraining_seed)
    if defence.method != "dp_sgd":
        trace = trace_of(shop, model)
        left = kept_by(model, defence, trace)
        kept = left if defence.method == "remove" else kept
    points = tensors(shop, layout.drawn.pools[model.pool][kept])
    try:
        if defence.method == "noise":
            size = sum(parameter.numel() for parameter in found.parameters() if parameter.requires_grad)
            scale = noise_scale(trace, float(defence.strength or 0), size)
            fit_noised(
                found, points, recipe, seed=seed_of(model.retraining_seed), marked=~left[model.half], scale=scale
            )
        else:
            fit(found, points, recipe, seed=seed_of(model.retraining_seed))
    except FloatingPointError as error:
        return {METRICS: pack_json({DIVERGED: str(error)})}
    return finished(shop, model, found, points, recipe, kept=kept)


def diverged(shop: Workshop, models: Iterable[Watched], arm: str) -> list[dict[str, str]]:
    """Return which of ``models`` an arm could not train, with their errors."""
    layout = scheduler(shop)
    found = []
    for model in models if arm != NONE else ():  # a plan whose own recipe diverges is refused
        place = layout.made(model, arm)
        told = json.loads(shop.store.get(place.stage, place.key).read(METRICS))
        if DIVERGED in told:
            found.append({"model": model.name, "error": told[DIVERGED]})
    return found


def kept_by(model: Watched, defence: Defence, trace: Trace) -> NDArray[np.bool_]:
    """Return which points of the pool (2n,) a model keeps: its half but the share that its own ranking puts on top."""
    from audits.disclosure.rankings import RANKINGS
    from audits.disclosure.twins import kept_points

    scores = np.full(len(model.half), np.nan)
    scores[model.half] = RANKINGS[str(defence.ranking)](trace, model.seed)
    kept: NDArray[np.bool_] = kept_points(model.half[None], scores[None], float(defence.share or 0))[0]
    return kept
