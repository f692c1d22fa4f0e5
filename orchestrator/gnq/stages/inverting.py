"""Stage invert: the most exposed images of a pool's targets are sought in the models that an arm publishes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from audits.gnq import inversion
from audits.gnq.inversion import compare
from audits.seeds import Purpose
from audits.uniqueness.rankings import RANKINGS
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays, pack_json
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.defending import DIVERGED, diverged
from orchestrator.gnq.stages.stored import stored, tensors, trace_of

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from audits.gnq.inversion_settings import InversionSettings
    from orchestrator.gnq.design import Watched

LIKENESS = "likeness.json"
IMAGES = "images.safetensors"
RANKED_BY = "gnq_log"
"""The ranking that says which images are sought."""
OWN, TWIN, START = "own", "twin", "start"
"""What is compared with the image: what the target's model gives; as controls what that of its twin gives, which never
saw the image, and the mean image around which both searches start, told once, without a defence."""
MEASURES = ("ssim_image", "ssim_class_mean", "mse_image", "mse_class_mean")


@dataclass(frozen=True)
class Sought:
    """What is sought of one target: K of its own images.

    ``ids`` (K,): rows of the data set; ``labels``: their classes, counted among those that take part; ``images`` and
    ``class_means`` (K, C, H, W): the latter over the other images of the class in the target's half, NaN where there
    are none; ``start`` (C, H, W): the mean image that the search begins at; ``same_class`` (K, 2): how many other
    images of the class are in the target's half, and how many in its twin's.
    """

    ids: np.ndarray[Any, np.dtype[np.int64]]
    labels: list[int]
    images: torch.Tensor
    class_means: torch.Tensor
    start: torch.Tensor
    same_class: list[tuple[int, int]]


def invert(context: Context, job: Job) -> dict[str, bytes]:
    """Seek each target's most exposed images in its model and in its twin's, and say how like what is found is.

    Both models are searched at the image's class, from the same starts: the mean of the *twin's* half, which holds
    nothing of the target's images, and noisy copies of it. The noise is that of the pool, whatever the arm, so that
    arms can be compared in pairs. Of several starts the one of which the model is surest counts.
    """
    design = context.design
    asked = design.plan.audit.inversion
    assert asked is not None, "a plan without inversion has no job of this stage"
    seed = context.seed(Purpose.INVERT, str(job.unit))
    targets = design.of(job.unit, "target")
    if lost := diverged(context, targets, job.label):
        return {LIKENESS: pack_json({"rows": [], DIVERGED: lost})}
    rows: list[dict[str, Any]] = []
    images: dict[str, list[torch.Tensor]] = {}
    for target, twin in zip(targets, targets[::-1], strict=True):
        sought = most_exposed(context, target, asked.images)
        seen = {"image": sought.images, "class_mean": sought.class_means, "start": sought.start}
        for name, model in ((OWN, target), (TWIN, twin)):
            seen[name], sure = reconstruct(context, model, job.label, sought, asked.settings, seed)
            rows += [
                {"target": target.index, "model": name, **row} for row in likeness(context, sought, seen[name], sure)
            ]
        if job.label == NONE:
            unsearched = replace(asked.settings, steps=0, starts=1)
            given, sure = reconstruct(context, target, job.label, sought, unsearched, seed)
            rows += [{"target": target.index, "model": START, **row} for row in likeness(context, sought, given, sure)]
        for name, value in seen.items():
            images.setdefault(name, []).append(value.float().cpu())
    arrays = {name: torch.stack(each).numpy() for name, each in images.items()}
    return {LIKENESS: pack_json({"rows": rows}), IMAGES: pack_arrays(arrays)}


def most_exposed(context: Context, target: Watched, count: int) -> Sought:
    """Return the ``count`` own points of a target that its trace ranks highest, with what they are compared to."""
    design = context.design
    pool = design.drawn.pools[target.pool]
    x, y = tensors(context, pool).batch(slice(None))
    scores = RANKINGS[RANKED_BY](trace_of(context, target), target.seed)
    places = np.flatnonzero(target.half)[np.argsort(-scores, kind="stable")[:count]]
    own = torch.from_numpy(target.half).to(y.device)
    means, counts = [], []
    for place in places.tolist():
        others = own & (y == y[place])
        others[place] = False
        means.append(x[others].mean(0))
        counts.append((int(others.sum()), int((~own & (y == y[place])).sum())))
    return Sought(pool[places], y[places].tolist(), x[places], torch.stack(means), x[~own].mean(0), counts)


def reconstruct(
    context: Context, model: Watched, arm: str, sought: Sought, settings: InversionSettings, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a model gives at the classes of the images sought: (K, C, H, W), and how sure it is of each (K,)."""
    value_range = range_of(context.design.data)
    start = sought.start.clamp(*value_range)  # a mean may leave the range by rounding
    tried = inversion.invert(
        stored(context, model, arm), sought.labels, start, settings, seed=seed, value_range=value_range
    )
    best = tried.confidence.argmax(1)
    each = torch.arange(len(best), device=best.device)
    return tried.images[each, best], tried.confidence[each, best]


def range_of(data: Dataset) -> tuple[float, float]:
    """Return the allowed interval of the data's values."""
    assert data.value_range is not None, "refused where jobs are laid out (check_images)"
    return data.value_range


def likeness(context: Context, sought: Sought, given: torch.Tensor, sure: torch.Tensor) -> list[dict[str, Any]]:
    """Return one row an image: how like the reconstruction is to it and to the mean of its class; None for no mean."""
    data = context.design.data
    rows = []
    for k, point in enumerate(sought.ids.tolist()):
        seen = compare(given[k], sought.images[k], sought.class_means[k], range_of(data))
        values = {name: float(getattr(seen, name)) for name in MEASURES}
        rows.append(
            {
                "point_id": point,
                "label": str(data.classes[data.labels[point]]),
                "confidence": float(sure[k]),
                "same_class": sought.same_class[k][0],
                "same_class_twin": sought.same_class[k][1],
                **{name: None if np.isnan(value) else value for name, value in values.items()},
            }
        )
    return rows
