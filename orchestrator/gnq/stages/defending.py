"""Stage defend: the model that an arm publishes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from audits.gnq.kept import kept_points
from audits.gnq.noise import fit_noised, noise_scale
from audits.training.fit import fit
from audits.uniqueness.rankings import RANKINGS
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.store.payloads import pack_json
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.finished import finished, seed_of, untrained
from orchestrator.gnq.stages.stored import tensors, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from audits.uniqueness.accumulate import Trace
    from orchestrator.gnq.design import Watched
    from orchestrator.gnq.plan import Defence

DIVERGED = "diverged"
"""What a stage says in place of a model, or of what attacks make of models: how their training ended."""


def defend(context: Context, job: Job) -> dict[str, bytes]:
    """Train one model again behind a defence: without the points on top, with noise on them, or with DP-SGD.

    A training that diverges leaves its error in place of the model: it costs its arm, not the others.
    """
    design = context.design
    model, defence = design.models[job.member], design.plan.arms[job.label]
    assert defence is not None, "arm none has no job of its own"
    kept = model.half
    recipe, found = defence.recipe or design.plan.recipe, untrained(context, model.retraining_seed)
    if defence.method != "dp_sgd":
        trace = trace_of(context, model, twin=defence.ranking == "twin_loss")
        left = kept_by(model, defence, trace)
        kept = left if defence.method == "remove" else kept
    points, seed = tensors(context, design.source(model)[kept]), seed_of(model.retraining_seed)
    try:
        if defence.method == "noise":
            size = sum(parameter.numel() for parameter in found.parameters() if parameter.requires_grad)
            scale = noise_scale(trace, float(defence.strength or 0), size)
            marked = ~left[model.half]
            fit_noised(
                found, points, recipe,
                seed=seed, marked=marked, scale=scale, keeper=context.keeper, team=context.team,
            )  # fmt: skip
        else:
            fit(found, points, recipe, seed=seed, keeper=context.keeper, team=context.team)
    except FloatingPointError as error:
        return {METRICS: pack_json({DIVERGED: str(error)})}
    return finished(context, model, found, points, recipe, kept=kept)


def diverged(context: Context, models: Iterable[Watched], arm: str) -> list[dict[str, str]]:
    """Return which of ``models`` an arm could not train, with their errors."""
    design = context.design
    found = []
    for model in models if arm != NONE else ():  # a plan whose own recipe diverges is refused
        place = design.made(model, arm)
        told = json.loads(context.store.get(place.stage, place.key).read(METRICS))
        if DIVERGED in told:
            found.append({"model": model.name, "error": told[DIVERGED]})
    return found


def kept_by(model: Watched, defence: Defence, trace: Trace) -> NDArray[np.bool_]:
    """Return which points of the pool (2n,) a model keeps: its half but the share that its own ranking puts on top."""
    scores = np.full(len(model.half), np.nan)
    scores[model.half] = RANKINGS[str(defence.ranking)](trace, model.seed)
    kept: NDArray[np.bool_] = kept_points(model.half[None], scores[None], float(defence.share or 0))[0]
    return kept
