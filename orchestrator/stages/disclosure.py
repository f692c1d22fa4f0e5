"""Models watched while they train: stage disclosure, and the ranking of points by exposure.

An auditor's look at each target's training, taken before anything is unlearned. No attack reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.errors import BadInput
from orchestrator.jobs import Job
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_arrays

if TYPE_CHECKING:
    from torch import nn

    from audits.data.partition import Member
    from audits.disclosure.accumulate import Trace

DISCLOSURE = "disclosure.safetensors"
EXPOSURE = "exposure"
SCORES = ("gnq_log", "loss_log", "gradient_norm_log", "final_loss", "gradient_norm")


def disclosure(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Train a target again, to the same bits, and say how unique the gradients of its n training points were.

    ``point_id`` (n,) int64; (n,) float64: ``bits`` (``bits_upper``) and the rankings ``SCORES``, of which the first is
    made of uniqueness and the others are its controls (``audits.disclosure.rankings``).
    """
    from audits.disclosure.bits import bits_upper
    from audits.disclosure.rankings import RANKINGS

    member = shop.scheduler.member(job.member)
    model, trace = watch(shop, member)
    check_same(shop, member, model)
    scores = {name: RANKINGS[name](trace, 0) for name in SCORES}
    bits = bits_upper(trace.gnq["ridge"], trace.weights)
    return {DISCLOSURE: pack_arrays({"point_id": member.train, "bits": bits, **scores})}


def rank_exposed(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Rank each point of the pool among those of the model that trains on it: ``exposure`` (pool,), in its order."""
    import numpy as np

    from audits.disclosure.rankings import RANKINGS
    from audits.disclosure.watching import RANKING, percentile
    from orchestrator.stages.ranking import RANKING as FILE

    ids = shop.scheduler.ranked_points()
    found = np.full(len(ids), np.nan)
    place = np.argsort(ids)
    for member in shop.scheduler.ranking_members.values():
        _, trace = watch(shop, member)
        rows = place[np.searchsorted(ids, member.train, sorter=place)]
        found[rows] = percentile(RANKINGS[RANKING](trace, 0))
    return {FILE: pack_arrays({EXPOSURE: found})}


def watch(shop: Workshop, member: Member) -> tuple[nn.Module, Trace]:
    """Train ``member`` as stage train does, to the same bits; return the model and what was seen of its points."""
    from audits.disclosure.watching import train_watched

    recipe, seed, chunk = shop.scheduler.recipe_of(member), shop.seed("train", member.name), shop.plan.compute.chunk
    try:
        return train_watched(shop.builder(member), shop.tensors(member.train), recipe, seed, chunk)
    except FloatingPointError as error:
        raise BadInput(f"recipe: {member.name}: {error}") from None


def check_same(shop: Workshop, member: Member, model: nn.Module) -> None:
    """Refuse a second training whose weights are not those of the stored model, of which it would say nothing."""
    import torch

    stored = shop.model(shop.scheduler.trained(member), member).state_dict()
    for name, value in model.state_dict().items():
        if not torch.equal(value, stored[name]):
            raise BadInput(
                f"audit.disclosure: {member.name} trained again differs from the stored model in {name}, so training "
                f"cannot be repeated on {shop.scheduler.device}; set compute.device to cpu or audit.disclosure to false"
            )
