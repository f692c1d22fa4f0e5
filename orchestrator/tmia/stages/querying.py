"""Stage query: posteriors of models, and questions that are answered with labels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from audits.queries import hop_skip_jump as search
from audits.queries.noise_votes import kept_share
from audits.queries.oracles import label_oracle
from audits.queries.start_points import starts_from_pool
from audits.queries.together import Together, together
from audits.seeds import Purpose
from audits.training.loop import logits
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays, unpack_arrays
from orchestrator.tmia.stages.context import Context
from orchestrator.tmia.stages.stars import filled
from orchestrator.tmia.stages.stored import stored, tensors

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from torch import nn

    from orchestrator.tmia.design import Fitted

ANSWERS = "answers.safetensors"
SELECTION = "selection.safetensors"


def query(context: Context, job: Job) -> dict[str, bytes]:
    """Put one kind of question to one unit of models."""
    design = context.design
    group: Any = job.label
    models = design.units(group, design.paired[group] if job.kind == "pairs" else None)[job.unit]
    if job.kind == "posteriors":
        places = {"candidates": design.sets.candidates}
        if group == "reference":
            places |= {"samples": design.samples}
        return {ANSWERS: pack_arrays(posteriors(context, models, places))}
    if job.kind == "fit_points":
        return {ANSWERS: pack_arrays(posteriors(context, models, {"fit": design.fit_points}))}
    if job.kind == "pairs":
        points = np.arange(len(design.fit_points))
        return {ANSWERS: pack_arrays(distances(context, models, design.fit_points, Sights.of(context, "fit", points)))}
    rows = pool_order(context)[design.rows(job.shard)]
    ids = design.sets.candidates[rows]
    if job.kind == "distances":
        return {ANSWERS: pack_arrays(distances(context, models, ids, Sights.of(context, "candidates", rows)))}
    return {ANSWERS: pack_arrays(votes(context, models, ids))}


def posteriors(context: Context, models: Sequence[Fitted], places: Mapping[str, NDArray[np.int64]]) -> dict[str, Any]:
    """Return the float32 posteriors (models, N, classes) of each model at the points (N,) of each name."""
    found = {}
    for name, ids in places.items():
        x, _ = tensors(context, "own", ids).all()
        found[name] = np.stack([probabilities(stored(context, model), x) for model in models])
    return found


def probabilities(model: nn.Module, x: torch.Tensor) -> NDArray[np.float32]:
    """Return the posteriors (N, classes) float32 of a model at ``x`` (N, ...)."""
    found: NDArray[np.float32] = logits(model, x).double().softmax(1).float().cpu().numpy()
    return found


@dataclass(frozen=True)
class Sights:
    """How start points are told apart: ``classes`` (N,) of the points asked about, ``known`` (R,) of the samples.

    True classes where y* is the true one and the models have it; else those that most reference models see, which need
    not be among the true ones. ``share`` (R,): the part of the reference models that see ``known`` in a sample.
    """

    classes: NDArray[np.int64]
    known: NDArray[np.int64]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, context: Context, name: Literal["candidates", "fit"], rows: NDArray[np.int64]) -> Sights:
        """Return what reference models see in samples, and in places ``rows`` (N,) of candidates or fit points."""
        design = context.design
        ids = {"candidates": design.sets.candidates, "fit": design.fit_points}[name]
        seen, known = labelled(context, "samples"), design.true_star(design.samples)
        classes = design.true_star(ids[rows])
        if known is None or classes is None or design.asked_side == "other":  # a student may lack the true class
            classes, known = filled(classes, labelled(context, name)[rows].argmax(1)), filled(known, seen.argmax(1))
        return cls(classes, known, seen[np.arange(len(known)), known] / design.plan.split.reference_models)


def labelled(context: Context, name: str) -> NDArray[np.int64]:
    """Return (N, classes): how many reference models label each of the candidates, samples or points of the fit how."""
    design = context.design
    keys = [job.key for job in design.fit_point_jobs] if name == "fit" else design.reference_posteriors()
    counts: NDArray[np.int64] | None = None
    for key in keys:
        posterior = unpack_arrays(context.store.get("query", key).read(ANSWERS))[name]
        found = np.eye(posterior.shape[-1], dtype=np.int64)[posterior.argmax(-1)].sum(0)
        counts = found if counts is None else counts + found
    assert counts is not None, "there are reference models"
    return counts


def distances(context: Context, models: Sequence[Fitted], ids: NDArray[np.int64], sights: Sights) -> dict[str, Any]:
    """Return ``distance`` (models, N) float64 and ``queries`` (models, N) at points ``ids``.

    Start points and random draws belong to the point and are the same for every model.
    """
    import torch

    design = context.design
    plan = design.plan
    schedule = {"rank": search.RANK, "plain": search.PLAIN, "absolute": search.ABSOLUTE}[
        plan.audit.hop_skip_jump.schedule
    ]
    x, y = tensors(context, "own", ids).all()
    pool, _ = tensors(context, "own", design.samples).all()
    classes, known = torch.from_numpy(sights.classes), torch.from_numpy(sights.known)
    starts = starts_from_pool(x.flatten(1), classes, pool.flatten(1), known, schedule.starts, agreement=sights.share)
    true = design.true_star(ids)
    star = y.new_full(y.shape, search.PREDICTED) if true is None else torch.from_numpy(true).to(y)
    networks = [stored(context, model) for model in models]
    at_once = together(networks, design.data.shape, x.flatten(1))
    asked = at_once or [Asked(model, design.data.shape) for model in networks]
    found = search.distances_of_models(
        asked,
        x.flatten(1),
        y,
        ids,
        starts,
        schedule,
        context.seed(Purpose.HOP_SKIP_JUMP),
        design.data.value_range,
        star,
    )
    counts = [asked.asked] * asked.count if isinstance(asked, Together) else [each.count for each in asked]
    queries = [np.full(len(ids), each // len(ids), dtype=np.int32) for each in counts]
    return {"distance": found.cpu().numpy(), "queries": np.stack(queries)}


class Asked:
    """Labels of one model, asked with flat points through an oracle that shows nothing else; ``count`` of them."""

    def __init__(self, model: nn.Module, shape: tuple[int, ...]) -> None:
        self.oracle, self.shape, self.count = label_oracle(model), shape, 0

    def __call__(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the labels (N,) of points (N, D)."""
        self.count += len(flat)
        said: torch.Tensor = self.oracle.ask(flat.reshape(-1, 1, *self.shape), np.arange(len(flat)))
        return said[:, 0]


def votes(context: Context, models: Sequence[Fitted], ids: NDArray[np.int64]) -> dict[str, Any]:
    """Return ``share`` (models, N) of noisy copies that keep the model's y* at points ``ids``, and ``queries``."""
    import torch

    design = context.design
    audit = design.plan.audit
    x, y = tensors(context, "own", ids).all()
    flat, shares, queries = x.flatten(1), [], []
    known = design.true_star(ids)
    true = None if known is None else torch.from_numpy(known).to(y)
    for model in models:
        asked = Asked(stored(context, model), design.data.shape)
        star = y if audit.y_star == "true" and design.asked_side == "own" else asked(flat)
        if true is not None and design.asked_side == "other":
            star = torch.where(true >= 0, true, star)
        share = kept_share(
            asked, flat, star, ids, sigma=audit.noise.sigma, copies=audit.noise.copies,
            seed=context.seed(Purpose.VOTES),
            value_range=design.data.value_range,
        )  # fmt: skip
        shares.append(share)
        queries.append(np.full(len(ids), asked.count // len(ids), dtype=np.int32))
    return {"share": np.stack(shares), "queries": np.stack(queries)}


def pool_order(context: Context) -> NDArray[np.int64]:
    """Return the candidates (K,) in the order in which they are asked."""
    key = context.design.select_job().key
    order: NDArray[np.int64] = unpack_arrays(context.store.get("select", key).read(SELECTION))["order"]
    return order
