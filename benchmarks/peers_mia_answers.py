"""The answers that membership attacks are handed, one target at a time: the same for ours and for the peers'.

They are those of a plan of `orch audit mia`: of its targets and shadows at the points of each pool, read from the
store, where the audit leaves them. What the store lacks is trained and asked first, in this process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Ids, Labels
from audits.errors import BadInput
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, open_design
from orchestrator.mia.design import MiaDesign
from orchestrator.mia.jobs import MiaJobs
from orchestrator.mia.stages.asking import ANSWERS, JUDGED, SHADOWS, STRANGERS
from orchestrator.mia.stages.points import outside_points, pool_points
from orchestrator.mia.stages.scoring import members

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Known:
    """The same models at Z points that none of them was trained on: logits (Z, C) and (M, Z, C), classes (Z,)."""

    labels: Labels
    target: Logits
    shadows: Logits


@dataclass(frozen=True)
class Handed:
    """One target of a pool and the pool's M shadows, at its K points without canaries.

    ``target`` (K, C) and ``shadows`` (M, K, C): logits; ``half`` (M, K) bool: which points a shadow was trained on,
    rows 2i and 2i + 1 twins; ``labels`` (K,). ``member`` (K,) bool is the truth about the target: scores are judged by
    it, and peers want members in front (``order``). ``known`` and ``strangers`` (logits at both kinds of points of
    models that saw none of them) serve our attacks alone.
    """

    pool: int
    labels: Labels
    target: Logits
    shadows: Logits
    half: Bools
    member: Bools
    known: Known
    strangers: tuple[Logits, Logits] | None

    @property
    def order(self) -> Ids:
        """The places of members, then those of the others."""
        return np.argsort(~self.member, kind="stable")

    def at(self, places: Ids) -> Handed:
        """Return what is handed of the points at ``places`` alone, in this order."""
        strangers = None if self.strangers is None else (self.strangers[0][:, places], self.strangers[1])
        return Handed(
            self.pool, self.labels[places], self.target[places], self.shadows[:, places], self.half[:, places],
            self.member[places], self.known, strangers,
        )  # fmt: skip

    def members_first(self) -> Handed:
        """Return the same points in the order that peers want."""
        return self.at(self.order)

    def back(self, scores: NDArray[np.floating]) -> Floats:
        """Return scores (K,) of points in the order of peers in the order of these."""
        found = np.empty(len(self.member))
        found[self.order] = scores
        return found


def opened(plan: BasePlan, store: Store) -> WorkerContext[MiaDesign]:
    """Return the context of a plan whose targets and shadows were asked, in this process if the store lacks that."""
    if plan.kind != "mia":
        raise BadInput(f"audit.kind is {plan.kind!r} in the plan; allowed: mia")
    design = cast("MiaJobs", open_design(plan, store))
    context: WorkerContext[MiaDesign] = WorkerContext(kind_named("mia"), design, store)
    stages = ("train", "ask")
    todo = [job for job in design.jobs() if job.stage in stages and not store.has(job.stage, job.key)]
    if any(job.stage == "train" for job in todo):
        print(f"training {sum(job.stage == 'train' for job in todo)} models", file=sys.stderr)
    torch.set_num_threads(plan.compute.threads)
    for job in sorted(todo, key=lambda job: stages.index(job.stage)):
        context.perform(job)
    return context


def handed(context: WorkerContext[MiaDesign]) -> Iterator[Handed]:
    """Yield both targets of one pool after the other."""
    outside = outside_points(context).y.cpu().numpy()
    for pool in range(context.design.plan.split.pools):
        read = unpack_arrays(context.store.get("ask", context.design.ask_key(pool)).read(ANSWERS))
        if SHADOWS not in read:
            raise BadInput("split.shadows is 0 in the plan; peers are compared with attacks that need 4 or more")
        ordinary = np.flatnonzero(~context.design.taught(pool).planted)
        half = np.stack([model.half for model in context.design.of(pool, "shadow")])
        strangers = (read[STRANGERS], read[f"known.{STRANGERS}"]) if STRANGERS in read else None
        for target, member in enumerate(members(context.design, pool)[:2]):
            known = Known(outside, read[f"known.{JUDGED}"][target], read[f"known.{SHADOWS}"])
            labels = pool_points(context, pool).y.cpu().numpy()
            one = Handed(pool, labels, read[JUDGED][target], read[SHADOWS], half, member, known, strangers)
            yield one.at(ordinary)
