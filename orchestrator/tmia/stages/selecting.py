"""Stage select: every selector scores the candidates, and they are put into the order in which they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.seeds import Purpose
from audits.signals.loss import log_loss
from audits.tmia.candidate_uniqueness import CandidateUniqueness
from audits.tmia.features import Features
from audits.tmia.selectors import SELECTORS, Case
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays, unpack_arrays
from orchestrator.tmia.stages.context import Context
from orchestrator.tmia.stages.querying import ANSWERS, SELECTION
from orchestrator.tmia.stages.stars import filled
from orchestrator.tmia.stages.stored import stored, tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from orchestrator.tmia.design import Fitted, TmiaDesign


def select(context: Context, job: Job) -> dict[str, bytes]:
    """Score all candidates by every selector of the plan, and put them into the order in which they are asked.

    ``score.NAME`` (K,), ``reference.NAME`` (R,) where known, ``order`` (K,): the selectors' rankings in turn.
    """
    design = context.design
    keys = job.document["posteriors"]
    loss, reference_loss = reference_losses(context, keys)
    everyone = np.concatenate([design.sets.candidates, design.samples])
    models = StoredModels(context, design.models_of("reference"))
    x, _ = tensors(context, "own", everyone).all()
    unique = uniqueness(context) if "gnq" in design.plan.audit.selectors else (None, None)
    case = Case(
        candidates=len(design.sets.candidates),
        classes=len(design.classes("own")),
        train_size=design.plan.split.train_size,
        seed=context.seed(Purpose.SELECT),
        features=Features(models, x, context.seed(Purpose.FEATURES)),
        loss=loss,
        reference_loss=reference_loss,
        reference_outside=~sampled(design),
        uniqueness=unique[0],
        reference_uniqueness=unique[1],
    )
    found: dict[str, Any] = {}
    for name in design.plan.audit.selectors:
        settings = {"delta": design.plan.audit.neighbours.delta} if name == "neighbours" else {}
        scores = SELECTORS[name](**settings).select(case)
        found[f"score.{name}"] = scores.candidates
        if scores.reference is not None:
            found[f"reference.{name}"] = scores.reference
    ranked = {name: found[f"score.{name}"] for name in design.plan.audit.selectors}
    found["order"] = interleaved(ranked)
    return {SELECTION: pack_arrays(found)}


class StoredModels(Sequence["nn.Module"]):
    """Models of the store, each read when it is asked for."""

    def __init__(self, context: Context, models: Sequence[Fitted]) -> None:
        self.context, self.models = context, models

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, index: Any) -> Any:
        return stored(self.context, self.models[index])


def interleaved(scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return all candidates (K,), the foremost of each selector's ranking in turn; every other turn is of ``none``.

    ``none`` ranks in the design's random order: its turns make up a random sample beside those that were selected.
    """
    rankings = {name: iter(np.argsort(-score, kind="stable").tolist()) for name, score in scores.items()}
    others = [name for name in rankings if name != "none"]
    turns = [turn for name in others for turn in ("none", name)] if "none" in rankings and others else list(rankings)
    order: dict[int, None] = {}
    for turn in cycle(turns):
        if (place := next((row for row in rankings[turn] if row not in order), None)) is None:
            return np.fromiter(order, dtype=np.int64)
        order[place] = None
    raise AssertionError("a plan has a selector")


def random_sample(order: NDArray[np.int64], pool: int) -> int:
    """Return how many of the first candidates, in the design's random order, are all among the ``pool`` asked."""
    asked = np.zeros(len(order), dtype=np.bool_)
    asked[order[:pool]] = True
    return len(order) if asked.all() else int(asked.argmin())


def sampled(design: TmiaDesign) -> NDArray[np.bool_]:
    """Return (n_ref, R): which reference models trained on which of the attacker's samples."""
    return np.stack([np.isin(design.samples, own) for own in design.sets.reference])


def uniqueness(context: Context) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean bits of uniqueness of candidates (K,) and of reference samples beside reference models' own
    points.

    A sample's mean is over the models that did not train on it; those that all trained on are left out.
    """
    design = context.design
    measure = CandidateUniqueness(chunk=design.plan.compute.chunk)
    candidates, samples = design.sets.candidates, design.samples[: measure.samples]
    asked = tensors(context, "own", np.concatenate([candidates, samples]))
    rows = []
    for model in design.models_of("reference")[: measure.models]:
        own = np.unique(model.train)
        found = measure.bits(
            stored(context, model), tensors(context, "own", own), asked, true_class=design.plan.audit.y_star == "true"
        )
        found[len(candidates) :][np.isin(samples, own)] = np.nan
        rows.append(found)
    table = np.stack(rows)
    told = (~np.isnan(table)).sum(0)
    mean = np.nansum(table, 0)[told > 0] / told[told > 0]
    return mean[: len(candidates)], mean[len(candidates) :]


def reference_losses(context: Context, keys: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the reference models' losses of y* on candidates (n_ref, K) and samples (n_ref, R).

    Unit by unit of the models: the posteriors of all, (n_ref, K + R, classes), need not fit in memory.
    """
    design = context.design
    places = {"candidates": design.sets.candidates, "samples": design.samples}
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in places}
    for key in keys:
        unit = unpack_arrays(context.store.get("query", key).read(ANSWERS))
        for name, ids in places.items():
            star = stars(design, unit[name], ids)[..., None]
            found[name].append(log_loss(np.take_along_axis(unit[name], star, axis=-1)[..., 0]))
    return np.concatenate(found["candidates"]), np.concatenate(found["samples"])


def stars(design: TmiaDesign, posterior: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return y* (models, N) of ``posterior`` (models, N, classes) at points ``ids``: the true or the own class."""
    return filled(design.true_star(ids), posterior.argmax(-1).astype(np.int64))


def joined(context: Context, keys: Sequence[str], name: str) -> NDArray[Any]:
    """Return one array of the stored answers ``keys``, models joined."""
    return np.concatenate([unpack_arrays(context.store.get("query", key).read(ANSWERS))[name] for key in keys])
