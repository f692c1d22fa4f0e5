"""Stage match: points of a pool's targets are sought from their gradients at one checkpoint of the training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from audits.gnq.gradient_inversion.assignment import in_order
from audits.gnq.gradient_inversion.gradients import Gradients, mean_of, noise_like, point_gradients
from audits.gnq.gradient_inversion.labels import inferred_labels
from audits.gnq.gradient_inversion.matching import reconstruct
from audits.gnq.gradient_inversion.settings import ANALYTIC
from audits.gnq.inversion import mse, ssim
from audits.gradients.validate import made_auditable
from audits.seeds import numpy_generator, torch_generator
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays, pack_json
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.finished import untrained
from orchestrator.gnq.stages.inverting import range_of
from orchestrator.gnq.stages.looking import at_checkpoint
from orchestrator.gnq.stages.stored import stored, tensors, trace_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from orchestrator.gnq.design import Watched

FOUND = "found.json"
PICTURES = "pictures.safetensors"
PURPOSE = "gradient inversion"
OWN, OTHER, CLASS_MEAN = "own", "other", "class_mean"
"""What an image is compared with: what its own gradient gives; as controls what that of another point of its class
gives, and the mean of the other images of its class, for which no gradient is needed."""
SCORES = ("gnq", "squared_norm", "loss")
"""Scores of a point at the checkpoint: GNQ in mode ridge, ‖g‖² and loss."""


@dataclass(frozen=True)
class Sample:
    """n own points of a target, drawn before anything is reconstructed, the same at every checkpoint.

    ``places`` (n,): of the points in the pool; ``x`` (n, C, H, W), ``y`` (n,); ``partners`` (n,): the place of another
    point of the class in the pool, −1 where there is none; ``class_means`` (n, C, H, W): of all others of the class in
    the pool, or of all others where there is none.
    """

    places: NDArray[np.int64]
    x: torch.Tensor
    y: torch.Tensor
    partners: NDArray[np.int64]
    class_means: torch.Tensor


def match(context: Context, job: Job) -> dict[str, bytes]:
    """Seek points of a pool's targets from their gradients, and say how like what is found is to them.

    The control of each point is the gradient of another point of its class, or noise of its norm where there is none,
    inverted in the same way from the same start and compared with the same image.
    """
    design = context.design
    told, pictures = [], []
    for target in design.of(job.unit, "target"):
        sample = drawn(context, target)
        rows, images = rows_and_images(context, target, sample, job.shard)
        told.append({"target": target.index, **scores(context, target, sample, job.shard), "found": rows})
        pictures.append({"image": sample.x, **images})
    arrays = {name: torch.stack([each[name] for each in pictures]).float().cpu().numpy() for name in pictures[0]}
    return {FOUND: pack_json({"targets": told}), PICTURES: pack_arrays(arrays)}


def drawn(context: Context, target: Watched) -> Sample:
    """Return the points of a target that are sought, at random, and what they are compared with."""
    design = context.design
    asked = design.plan.audit.gradient_inversion
    assert asked is not None, "a plan without gradient inversion has no job of this stage"
    random = numpy_generator(context.seed(PURPOSE, target.name))
    x, y = tensors(context, design.drawn.pools[target.pool]).batch(slice(None))
    places = random.permutation(np.flatnonzero(target.half))[: asked.points]
    labels = y.cpu().numpy()
    partners, means = [], []
    for place in places.tolist():
        others = np.flatnonzero((labels == labels[place]) & (np.arange(len(labels)) != place))
        partners.append(int(random.choice(others)) if len(others) else -1)
        rest = others if len(others) else np.flatnonzero(np.arange(len(labels)) != place)
        means.append(x[torch.from_numpy(rest).to(x.device)].mean(0))
    own = torch.from_numpy(places).to(x.device)
    return Sample(places, x[own], y[own], np.array(partners, np.int64), torch.stack(means))


def scores(context: Context, target: Watched, sample: Sample, place: int) -> dict[str, Any]:
    """Return the points of a sample and their scores at a checkpoint among all of the target's own."""
    design, trace = context.design, trace_of(context, target)
    rows = np.searchsorted(np.flatnonzero(target.half), sample.places)
    seen = {"gnq": trace.gnq["ridge"], "squared_norm": trace.squared_norm, "loss": trace.loss}
    ids = design.drawn.pools[target.pool][sample.places]
    return {
        "point_ids": ids.tolist(),
        "labels": [str(design.data.classes[design.data.labels[point]]) for point in ids],
        "alone": int((sample.partners < 0).sum()),
        "scores": {name: seen[name][place][rows].tolist() for name in SCORES},
    }


def rows_and_images(
    context: Context, target: Watched, sample: Sample, look: int
) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
    """Return one row a batch size, method and gradient given, with SSIM and squared error of each point; and images."""
    design = context.design
    asked, chunk = design.plan.audit.gradient_inversion, design.plan.compute.chunk
    assert asked is not None, "a plan without gradient inversion has no job of this stage"
    value_range, seed = range_of(design.data), context.seed(PURPOSE, target.name)
    model = made_auditable(weights_at(context, target, look))
    own = point_gradients(model, sample.x, sample.y, chunk)
    given = {OWN: own, OTHER: others(context, model, own, target, sample)}
    rows, images = [likenesses(sample, CLASS_MEAN, sample.class_means, value_range)], {CLASS_MEAN: sample.class_means}
    for batch, method in settings(asked.batches, asked.methods):
        batches = torch.arange(asked.points, device=sample.y.device).reshape(-1, batch)
        parts = [mean_of(gradients, batches) for gradients in given.values()]
        means = {name: torch.cat([part[name] for part in parts]) for name in own}  # all are searched side by side
        known = sample.y[batches].repeat(len(given), 1)
        labels = known if batch > 1 else inferred_labels(model, means)[:, None]
        seen = reconstruct(
            model, means, labels, design.data.shape, method, asked.settings, seed=seed, value_range=value_range,
            chunk=chunk,
        ).images  # fmt: skip
        for place, name in enumerate(given):
            part = slice(place * len(batches), (place + 1) * len(batches))
            ordered = in_order(seen[part], sample.x[batches]).flatten(0, 1)
            right = float((labels == known)[part].double().mean()) if batch == 1 and name == OWN else None
            rows.append(
                {"batch": batch, "method": method, **likenesses(sample, name, ordered, value_range), "right": right}
            )
            images[picture_name(batch, method, name)] = ordered
    return rows, images


def settings(batches: tuple[int, ...], methods: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield every batch size and method; ``analytic`` for single points alone."""
    for batch in batches:
        yield from ((batch, method) for method in methods if batch == 1 or method != ANALYTIC)


def picture_name(batch: int, method: str, given: str) -> str:
    """Return the name under which images of a batch size, method and gradient given are stored."""
    return f"{method}-{batch}-{given}"


def likenesses(sample: Sample, given: str, images: torch.Tensor, value_range: tuple[float, float]) -> dict[str, Any]:
    """Return likeness of ``images`` to those of the sample, a number each."""
    images = images.clamp(*value_range)  # a mean may leave the range by rounding
    return {
        "given": given,
        "ssim": ssim(images, sample.x, value_range).tolist(),
        "mse": mse(images, sample.x).tolist(),
    }


def others(context: Context, model: nn.Module, own: Gradients, target: Watched, sample: Sample) -> Gradients:
    """Return gradients of the partners, for points without one noise of the norm of their own gradient."""
    design = context.design
    pool = design.drawn.pools[target.pool]
    x, _ = tensors(context, pool[np.maximum(sample.partners, 0)]).batch(slice(None))
    seen = point_gradients(model, x, sample.y, design.plan.compute.chunk)
    noise = noise_like(own, torch_generator(context.seed(PURPOSE, target.name, "noise")))
    alone = torch.from_numpy(sample.partners < 0).to(sample.y.device)
    return {
        name: torch.where(alone.reshape(-1, *[1] * (each.ndim - 1)), noise[name], each) for name, each in seen.items()
    }


def weights_at(context: Context, target: Watched, place: int) -> nn.Module:
    """Return a target as it stood at one of its checkpoints: before training, after it, or as its training kept it."""
    design = context.design
    if design.apart:
        return at_checkpoint(context, target, design.looks[place])
    if place == 0:
        return untrained(context, target.seed)
    assert place == len(design.looks) - 1, "refused by the plan's checks"
    return stored(context, target)
