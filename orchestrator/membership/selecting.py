"""Stage select: every selector scores the candidates, and they are put into the order in which they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.jobs import Job
from orchestrator.membership.stages import ANSWERS, SELECTION, scheduler, stored, tensors
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_arrays, unpack_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from orchestrator.membership.layout import Fitted
    from orchestrator.membership.schedule import MembershipScheduler


def select(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Score all candidates by every selector of the plan, and put them into the order in which they are asked.

    ``score.NAME`` (K,), ``contrast.NAME`` (R,) where known, ``order`` (K,): the selectors' rankings in turn.
    """
    from audits.membership.features import Features
    from audits.membership.selectors import SELECTORS, Case

    layout = scheduler(shop)
    keys = job.document["posteriors"]
    loss, contrast_loss = contrast_losses(shop, keys)
    everyone = np.concatenate([layout.design.candidates, layout.samples])
    models = StoredModels(shop, layout.asked("contrast"))
    x, _ = tensors(shop, "own", everyone).all()
    unique = uniqueness(shop) if "gnq" in layout.plan.audit.selectors else (None, None)
    case = Case(
        candidates=len(layout.design.candidates),
        classes=len(layout.classes("own")),
        train_size=layout.plan.split.train_size,
        seed=shop.seed("select"),
        features=Features(models, x, shop.seed("features")),
        loss=loss,
        contrast_loss=contrast_loss,
        contrast_outside=~sampled(layout),
        uniqueness=unique[0],
        contrast_uniqueness=unique[1],
    )
    found: dict[str, Any] = {}
    for name in layout.plan.audit.selectors:
        settings = {"delta": layout.plan.audit.neighbours.delta} if name == "neighbours" else {}
        scores = SELECTORS[name](**settings).select(case)
        found[f"score.{name}"] = scores.candidates
        if scores.contrast is not None:
            found[f"contrast.{name}"] = scores.contrast
    ranked = {name: found[f"score.{name}"] for name in layout.plan.audit.selectors}
    found["order"] = interleaved(ranked)
    return {SELECTION: pack_arrays(found)}


class StoredModels(Sequence["nn.Module"]):
    """Models of the store, each read when it is asked for."""

    def __init__(self, shop: Workshop, models: Sequence[Fitted]) -> None:
        self.shop, self.models = shop, models

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, index: Any) -> Any:
        return stored(self.shop, self.models[index])


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


def sampled(layout: MembershipScheduler) -> NDArray[np.bool_]:
    """Return (n_ref, R): which contrast models trained on which of the attacker's samples."""
    return np.stack([np.isin(layout.samples, own) for own in layout.design.contrast])


def uniqueness(shop: Workshop) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean bits of uniqueness of candidates (K,) and of contrast samples beside contrast models' own points.

    A sample's mean is over the models that did not train on it; those that all trained on are left out.
    """
    from audits.membership.candidate_uniqueness import CandidateUniqueness

    layout = scheduler(shop)
    measure = CandidateUniqueness(chunk=layout.plan.compute.chunk)
    candidates, samples = layout.design.candidates, layout.samples[: measure.samples]
    asked = tensors(shop, "own", np.concatenate([candidates, samples]))
    rows = []
    for model in layout.asked("contrast")[: measure.models]:
        own = np.unique(model.train)
        found = measure.bits(
            stored(shop, model), tensors(shop, "own", own), asked, true_class=layout.plan.audit.y_star == "true"
        )
        found[len(candidates) :][np.isin(samples, own)] = np.nan
        rows.append(found)
    table = np.stack(rows)
    told = (~np.isnan(table)).sum(0)
    mean = np.nansum(table, 0)[told > 0] / told[told > 0]
    return mean[: len(candidates)], mean[len(candidates) :]


def contrast_losses(shop: Workshop, keys: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the contrast models' losses of y* on candidates (n_ref, K) and samples (n_ref, R).

    Unit by unit of the models: the posteriors of all, (n_ref, K + R, classes), need not fit in memory.
    """
    from audits.membership.p_values import log_loss

    layout = scheduler(shop)
    places = {"candidates": layout.design.candidates, "samples": layout.samples}
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in places}
    for key in keys:
        unit = unpack_arrays(shop.store.get("ask", key).read(ANSWERS))
        for name, ids in places.items():
            star = stars(layout, unit[name], ids)[..., None]
            found[name].append(log_loss(np.take_along_axis(unit[name], star, axis=-1)[..., 0]))
    return np.concatenate(found["candidates"]), np.concatenate(found["samples"])


def stars(layout: MembershipScheduler, posterior: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return y* (models, N) of ``posterior`` (models, N, classes) at points ``ids``: the true or the own class."""
    true = layout.true_star(ids)
    if true is None:
        own: NDArray[np.int64] = posterior.argmax(-1).astype(np.int64)
        return own
    found: NDArray[np.int64] = np.broadcast_to(true, posterior.shape[:2])
    return found


def joined(shop: Workshop, keys: Sequence[str], name: str) -> NDArray[Any]:
    """Return one array of the stored answers ``keys``, models joined."""
    return np.concatenate([unpack_arrays(shop.store.get("ask", key).read(ANSWERS))[name] for key in keys])
