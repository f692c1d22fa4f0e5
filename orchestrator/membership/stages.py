"""The bodies of the stages of a membership audit: fit, select, ask, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from audits.errors import BadInput
from orchestrator.jobs import Job, Reference
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_arrays, pack_json, unpack_arrays

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from torch import nn

    from audits.data.tensors import TensorSet
    from orchestrator.membership.layout import Fitted, Side
    from orchestrator.membership.schedule import MembershipScheduler

ANSWERS = "answers.safetensors"
SELECTION = "selection.safetensors"


def scheduler(shop: Workshop) -> MembershipScheduler:
    """Return the plan's scheduler."""
    return cast("MembershipScheduler", shop.scheduler)


def fit(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Train one model, from its teacher if it has one, and say how well it fits."""
    from audits.training.loop import accuracy, train_model
    from audits.training.transfer import train_student
    from orchestrator.stages.models import METRICS, pack_weights, privacy
    from orchestrator.stages.workshop import WEIGHTS

    layout = scheduler(shop)
    model = layout.models[job.member]
    points, recipe, seed = tensors(shop, model.side, model.train), layout.recipe_of(model), shop.seed("fit", model.name)
    classes = len(layout.classes(model.side))
    try:
        if layout.student(model):
            teacher, frozen = teacher_of(shop, model), layout.plan.transfer.n_frozen
            found = train_student(
                teacher, lambda count, own: layout.build(model.side, count, own), classes, frozen, points, recipe, seed
            )
        else:
            found = train_model(lambda own: layout.build(model.side, classes, own), points, recipe, seed)
    except FloatingPointError as error:
        raise BadInput(f"recipe: {model.name}: {error}") from None
    metrics = {"train_accuracy": accuracy(found, points), **privacy(recipe, len(points))}
    if len(model.test):
        metrics["test_accuracy"] = accuracy(found, tensors(shop, model.side, model.test))
    return {WEIGHTS: pack_weights(found), METRICS: pack_json(metrics)}


def teacher_of(shop: Workshop, model: Fitted) -> nn.Module:
    """Return the teacher of a student: a model of the plan, or that of the plan's file."""
    from audits.training.transfer import teacher_from

    layout = scheduler(shop)
    if model.teacher:
        return stored(shop, layout.models[model.teacher])
    file = layout.plan.transfer.teacher
    assert file is not None, "a student without a teacher of the plan has one in a file"
    return teacher_from(Path(file), lambda classes, seed: layout.build(model.side, classes, seed)).to(layout.device)


def stored(shop: Workshop, model: Fitted) -> nn.Module:
    """Return the trained model from the store."""
    layout = scheduler(shop)
    reference = Reference("fit", layout.fit_job(model).key)
    return shop.stored(reference, lambda: layout.build(model.side, len(layout.classes(model.side)), 0))


def tensors(shop: Workshop, side: Side, ids: NDArray[np.int64]) -> TensorSet:
    """Return points of a side on the plan's device; classes are counted among those that take part."""
    import torch

    from audits.data.tensors import TensorSet

    layout = scheduler(shop)
    points = layout.data_of_side(side).tensors(ids, layout.device)
    classes = torch.tensor(layout.classes(side), device=points.y.device)
    return TensorSet(points.x, torch.searchsorted(classes, points.y))


def ask(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Put one kind of question to one unit of models."""
    layout = scheduler(shop)
    group: Any = job.label
    models = layout.units(group, layout.paired[group] if job.kind == "pairs" else None)[job.unit]
    if job.kind == "posteriors":
        places = {"candidates": layout.design.candidates}
        if group == "contrast":
            places |= {"samples": layout.samples}
        return {ANSWERS: pack_arrays(posteriors(shop, models, places))}
    if job.kind == "fit_points":
        return {ANSWERS: pack_arrays(posteriors(shop, models, {"fit": layout.fit_points}))}
    if job.kind == "pairs":
        points = np.arange(len(layout.fit_points))
        return {ANSWERS: pack_arrays(distances(shop, models, layout.fit_points, Sights.of(shop, "fit", points)))}
    rows = pool_order(shop)[layout.rows(job.shard)]
    ids = layout.design.candidates[rows]
    if job.kind == "distances":
        return {ANSWERS: pack_arrays(distances(shop, models, ids, Sights.of(shop, "candidates", rows)))}
    return {ANSWERS: pack_arrays(votes(shop, models, ids))}


def posteriors(shop: Workshop, models: Sequence[Fitted], places: Mapping[str, NDArray[np.int64]]) -> dict[str, Any]:
    """Return the float32 posteriors (models, N, classes) of each model at the points (N,) of each name."""
    found = {}
    for name, ids in places.items():
        x, _ = tensors(shop, "own", ids).all()
        found[name] = np.stack([probabilities(stored(shop, model), x) for model in models])
    return found


def probabilities(model: nn.Module, x: torch.Tensor) -> NDArray[np.float32]:
    """Return the posteriors (N, classes) float32 of a model at ``x`` (N, ...)."""
    from audits.training.loop import logits

    found: NDArray[np.float32] = logits(model, x).double().softmax(1).float().cpu().numpy()
    return found


@dataclass(frozen=True)
class Sights:
    """How start points are told apart: ``classes`` (N,) of the points asked about, ``known`` (R,) of the samples.

    True classes where y* is the true one; else those that most contrast models see, which need not be among the true
    ones. ``share`` (R,): the part of the contrast models that see ``known`` in a sample.
    """

    classes: NDArray[np.int64]
    known: NDArray[np.int64]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, shop: Workshop, name: Literal["candidates", "fit"], rows: NDArray[np.int64]) -> Sights:
        """Return what contrast models see in samples, and in places ``rows`` (N,) of candidates or fit points."""
        layout = scheduler(shop)
        ids = {"candidates": layout.design.candidates, "fit": layout.fit_points}[name]
        seen, known = labelled(shop, "samples"), layout.true_star(layout.samples)
        if known is None:
            classes, known = labelled(shop, name)[rows].argmax(1), seen.argmax(1)
        else:
            classes = layout.own_labels(ids[rows])
        return cls(classes, known, seen[np.arange(len(known)), known] / layout.plan.split.contrast)


def labelled(shop: Workshop, name: str) -> NDArray[np.int64]:
    """Return (N, classes): how many contrast models label each of the candidates, samples or points of the fit how."""
    layout = scheduler(shop)
    keys = [job.key for job in layout.fit_point_jobs] if name == "fit" else layout.contrast_posteriors()
    counts: NDArray[np.int64] | None = None
    for key in keys:
        posterior = unpack_arrays(shop.store.get("ask", key).read(ANSWERS))[name]
        found = np.eye(posterior.shape[-1], dtype=np.int64)[posterior.argmax(-1)].sum(0)
        counts = found if counts is None else counts + found
    assert counts is not None, "there are contrast models"
    return counts


def distances(shop: Workshop, models: Sequence[Fitted], ids: NDArray[np.int64], sights: Sights) -> dict[str, Any]:
    """Return ``distance`` (models, N) float64 and ``queries`` (models, N) at points ``ids``.

    Start points and random draws belong to the point and are the same for every model.
    """
    import torch

    from audits.membership import hop_skip_jump as search
    from audits.membership.start_points import starts_from_pool

    layout = scheduler(shop)
    plan = layout.plan
    schedule = {"rank": search.RANK, "plain": search.PLAIN, "absolute": search.ABSOLUTE}[
        plan.audit.hop_skip_jump.schedule
    ]
    x, y = tensors(shop, "own", ids).all()
    pool, _ = tensors(shop, "own", layout.samples).all()
    classes, known = torch.from_numpy(sights.classes), torch.from_numpy(sights.known)
    starts = starts_from_pool(x.flatten(1), classes, pool.flatten(1), known, schedule.starts, agreement=sights.share)
    star = None if plan.audit.y_star == "true" else y.new_full(y.shape, search.PREDICTED)
    asked = [Asked(stored(shop, model), layout.data.shape) for model in models]
    found = search.distances_of_models(
        asked, x.flatten(1), y, ids, starts, schedule, shop.seed("hop_skip_jump"), layout.data.value_range, star
    )
    queries = [np.full(len(ids), each.count // len(ids), dtype=np.int32) for each in asked]
    return {"distance": found.cpu().numpy(), "queries": np.stack(queries)}


class Asked:
    """Labels of one model, asked with flat points through an oracle that shows nothing else; ``count`` of them."""

    def __init__(self, model: nn.Module, shape: tuple[int, ...]) -> None:
        from audits.oracles import label_oracle

        self.oracle, self.shape, self.count = label_oracle(model), shape, 0

    def __call__(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the labels (N,) of points (N, D)."""
        self.count += len(flat)
        said: torch.Tensor = self.oracle.ask(flat.reshape(-1, 1, *self.shape), np.arange(len(flat)))
        return said[:, 0]


def votes(shop: Workshop, models: Sequence[Fitted], ids: NDArray[np.int64]) -> dict[str, Any]:
    """Return ``share`` (models, N) of noisy copies that keep the model's y* at points ``ids``, and ``queries``."""
    from audits.membership.simple import NoiseVotes

    layout = scheduler(shop)
    audit = layout.plan.audit
    noise = NoiseVotes(audit.beta, audit.noise.sigma, audit.noise.copies)
    x, y = tensors(shop, "own", ids).all()
    flat, shares, queries = x.flatten(1), [], []
    for model in models:
        asked = Asked(stored(shop, model), layout.data.shape)
        star = y if audit.y_star == "true" else asked(flat)
        shares.append(noise.ask(asked, flat, star, ids, seed=shop.seed("votes"), value_range=layout.data.value_range))
        queries.append(np.full(len(ids), asked.count // len(ids), dtype=np.int32))
    return {"share": np.stack(shares), "queries": np.stack(queries)}


def pool_order(shop: Workshop) -> NDArray[np.int64]:
    """Return the candidates (K,) in the order in which they are asked."""
    key = scheduler(shop).select_job().key
    order: NDArray[np.int64] = unpack_arrays(shop.store.get("select", key).read(SELECTION))["order"]
    return order
