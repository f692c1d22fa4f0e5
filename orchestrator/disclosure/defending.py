"""Stage defend: the model that an arm publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audits.errors import BadInput
from orchestrator.disclosure.stages import finished, fresh, scheduler, seed_of, tensors, trace_of
from orchestrator.jobs import Job
from orchestrator.stages.workshop import Workshop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audits.disclosure.accumulate import Trace
    from orchestrator.disclosure.layout import Watched
    from orchestrator.disclosure.plan import Defence


def defend(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Train one model again behind a defence: without the points on top, with noise on them, or with DP-SGD."""
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
        raise BadInput(
            diverged(job.label, model, list(layout.plan.arms).index(job.label) - 1, defence, error)
        ) from None
    return finished(shop, model, found, points, recipe, kept=kept)


def diverged(arm: str, model: Watched, index: int, defence: Defence, error: Exception) -> str:
    """Return the line about an arm whose training diverged: whose recipe that was, and that nothing else is lost."""
    rate = f"defences.{index}.recipe.learning_rate" if defence.recipe else "recipe.learning_rate"
    calmer = f", lower defences.{index}.strength" if defence.method == "noise" else ""
    return (
        f"arm {arm}, model {model.name}: {error} ({rate}){calmer}, or leave the arm out; all that is "
        "finished is kept and used again"
    )


def kept_by(model: Watched, defence: Defence, trace: Trace) -> NDArray[np.bool_]:
    """Return which points of the pool (2n,) a model keeps: its half but the share that its own ranking puts on top."""
    from audits.disclosure.rankings import RANKINGS
    from audits.disclosure.twins import kept_points

    scores = np.full(len(model.half), np.nan)
    scores[model.half] = RANKINGS[str(defence.ranking)](trace, model.seed)
    kept: NDArray[np.bool_] = kept_points(model.half[None], scores[None], float(defence.share or 0))[0]
    return kept
