"""Distances to the decision boundary: every model is walked to its own, with a fixed budget of labels a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from audits.apollo.evidence.asking import ask_targets
from audits.apollo.evidence.base import KINDS, Case, Kind, Questions
from audits.apollo.evidence.parts import Part
from audits.apollo.evidence.settings import SearchSettings
from audits.arrays import Bools, Floats
from audits.queries.access import Access
from audits.queries.boundary_walk import LabelFunction
from audits.queries.oracles import LabelOracle, label_oracle
from audits.queries.small_budgets import schedule_within, signed_distances
from audits.queries.together import together
from audits.seeds import Purpose, derive_seed, torch_generator


@dataclass(frozen=True)
class Distances(Part):
    """Signed L2 distances from x to the boundary of its true class, float64; negative where the label at x is wrong,
    ±inf where the walk found no other side.

    ``pseudo``: (n, K) of the unlearned online shadows of both halves; ``inside``: (n, K), had trained on the candidate
    and then unlearned it; ``outside``: (n, K), never saw it; ``target``: (K,); ``queries``: (K,) asked of the target.
    """

    access: ClassVar[Access] = "labels"
    axes: ClassVar[Mapping[str, int | None]] = {"pseudo": 1, "inside": 1, "outside": 1, "target": 0, "queries": 0}
    shadows: ClassVar[Mapping[str, int]] = {"pseudo": 0, "inside": 0, "outside": 0}

    pseudo: Floats
    inside: Bools
    outside: Bools
    target: Floats
    queries: np.typing.NDArray[np.int32]


@KINDS.register("boundary")
@dataclass(frozen=True)
class Boundary(Kind):
    """HopSkipJump within ``Case.budget`` labels a candidate, as Choquette-Choo et al. (arXiv 2007.14321) measure.

    Nothing is taken from shadows: a walk starts at the nearest population points of another class (of the candidate's
    own class where the model's label is wrong). Start points and directions belong to the candidate and are the same
    for all models; the walk itself adapts to each model.
    """

    part: ClassVar[type[Part]] = Distances
    settings: ClassVar[tuple[str, ...]] = ("budget", "population")

    def gather(self, case: Case) -> Distances:
        """Return the distance of every model; raises ``BadInput`` when the budget is too small for a walk."""
        asked, groups = case.questions, case.shadows
        schedule = schedule_within(case.budget)
        count = schedule.restarts * schedule.starts
        starts = [nearest(asked, case.asked_population, count, own_class) for own_class in (False, True)]

        def measure(labels: LabelFunction, models: int = 1) -> Floats:
            own = [torch_generator(derive_seed(asked.seed, Purpose.BOUNDARY, int(point))) for point in asked.ids]
            x, y, away, home = (each.repeat(models, *[1] * (each.ndim - 1)) for each in (asked.x, asked.y, *starts))
            found: Floats = signed_distances(labels, x, y, away, home, own, schedule, asked.value_range).cpu().numpy()
            return found

        unlearned = [model for group in groups for model in group.unlearned]
        at_once = together(unlearned, asked.shape, asked.x)
        if at_once is None:
            pseudo = np.stack([measure(of_one(label_oracle(model), asked)) for model in unlearned])
        else:
            pseudo = measure(at_once, at_once.count).reshape(at_once.count, -1)
        return Distances(
            pseudo=pseudo,
            inside=np.concatenate([group.inside for group in groups]),
            outside=np.concatenate([group.outside for group in groups]),
            target=measure(lambda points: ask_targets(case.labels, by_point(points, asked), asked).flatten()),
            queries=np.full(len(asked.ids), schedule.queries, dtype=np.int32),
        )

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        return schedule_within(budget).queries


def by_point(points: torch.Tensor, asked: Questions) -> torch.Tensor:
    """Return ``points`` (K·Q, dimensions), point by point, as (K, Q, dimensions)."""
    return points.reshape(len(asked.ids), -1, points.shape[-1])


def of_one(oracle: LabelOracle, asked: Questions) -> LabelFunction:
    """Return the labels of one model for all candidates."""
    return lambda points: oracle.ask(by_point(points, asked).unflatten(-1, asked.shape), asked.ids).flatten()


def nearest(asked: Questions, population: Questions, count: int, own_class: bool) -> torch.Tensor:
    """Return the ``count`` population points (K, count, dimensions) nearest to each candidate, nearest first.

    Of the candidate's own class or of all others. With fewer than ``count`` they are used again; with none, points of
    the other kind stand in.
    """
    far = apart(asked.x, population.x)
    own = population.y == asked.y[:, None]
    wanted = own if own_class else ~own
    wanted = wanted | ~wanted.any(1, keepdim=True)
    order = torch.where(wanted, far, torch.inf).argsort(dim=1, stable=True)
    places = torch.arange(count, device=order.device) % wanted.sum(1, keepdim=True)
    return population.x[order.gather(1, places)]


def apart(x: torch.Tensor, pool: torch.Tensor) -> torch.Tensor:
    """Return the L2 distances (K, P) of ``x`` (K, D) to ``pool`` (P, D), from differences."""
    if x.is_cuda:
        return torch.cdist(x, pool, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.stack([torch.linalg.vector_norm(pool - one, dim=1) for one in x])
