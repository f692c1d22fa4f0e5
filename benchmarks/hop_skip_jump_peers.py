"""The searches for the nearest point of another class that are compared: ours, ART's and foolbox's HopSkipJump."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from audits.queries.hop_skip_jump import Schedule, distances
from audits.queries.start_points import starts_from_pool

BOX = (0.0, 1.0)
SEED = 1


class Counting(nn.Module):
    """A model that counts the points it is asked about."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.rows = 0

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows += len(x)
        answers: torch.Tensor = self.model(x.float())  # ART asks some of its questions in float64
        return answers


@dataclass(frozen=True)
class Problem:
    """Images (K, 1, H, W) in [0, 1] that ``model`` labels rightly as ``y`` (K,), and a pool of others to start from."""

    model: Counting
    x: torch.Tensor
    y: torch.Tensor
    pool: torch.Tensor
    pool_labels: torch.Tensor

    def first(self, points: int) -> Problem:
        """Return the problem of the first ``points`` images."""
        return Problem(self.model, self.x[:points], self.y[:points], self.pool, self.pool_labels)

    def across(self, points: torch.Tensor) -> torch.Tensor:
        """Return whether each point (K, …) has another label than its image."""
        return self.model(points).argmax(1) != self.y

    def starts(self, count: int) -> torch.Tensor:
        """Return ``count`` start images (K, count, D)."""
        return starts_from_pool(self.x.flatten(1), self.y, self.pool.flatten(1), self.pool_labels, count)

    def nearest_start(self, count: int) -> torch.Tensor:
        """Return the nearest of ``count`` start images that is across (K, 1, H, W); it takes ``count`` questions."""
        starts = self.starts(count).unflatten(2, self.x.shape[1:])
        answers = torch.stack([self.across(starts[:, i]) for i in range(count)], 1)
        far = (starts - self.x[:, None]).flatten(2).norm(dim=2).where(answers, torch.inf)
        return starts[torch.arange(len(self.x)), far.argmin(1)]


@dataclass(frozen=True)
class Budget:
    """What a peer is told: so many rounds, and directions in the first of them."""

    rounds: int
    directions: int = 100


class Search(Protocol):
    """A search for points of another label near each image."""

    def __call__(self, problem: Problem, budget: Budget) -> torch.Tensor:
        """Return points (K, …); NaN where there is none."""
        raise NotImplementedError


def ours(problem: Problem, schedule: Schedule, noise: bool = False) -> torch.Tensor:
    """Search with this package; from ``noise`` in place of images."""
    model, shape = problem.model, problem.x.shape[1:]
    starts = None if noise else problem.starts(schedule.starts)
    found = distances(
        lambda points: model(points.unflatten(1, shape)).argmax(1),
        problem.x.flatten(1),
        problem.y,
        range(len(problem.x)),
        starts,
        schedule,
        SEED,
        BOX,
    )
    return found.point.unflatten(1, shape)


def art(problem: Problem, budget: Budget, starts: int = 0) -> torch.Tensor:
    """Search with ART; from the nearest of ``starts`` start images, or from its own noise."""
    from art.attacks.evasion import HopSkipJump
    from art.estimators.classification import PyTorchClassifier

    np.random.seed(SEED)
    classifier = PyTorchClassifier(
        problem.model, nn.CrossEntropyLoss(), tuple(problem.x.shape[1:]), 10, clip_values=BOX, device_type="cpu"
    )
    attack = HopSkipJump(
        classifier, batch_size=1024, max_iter=budget.rounds, init_eval=budget.directions, verbose=False
    )
    first = {"x_adv_init": problem.nearest_start(starts).numpy().copy()} if starts else {}
    found = torch.from_numpy(attack.generate(problem.x.numpy().copy(), **first))
    found[(found == problem.x).flatten(1).all(1)] = torch.nan
    return found


def foolbox(problem: Problem, budget: Budget, starts: int = 0, together: bool = False) -> torch.Tensor:
    """Search with foolbox, all points ``together`` or each alone; from start images, or from its own blended noise."""
    from foolbox import PyTorchModel
    from foolbox.attacks import HopSkipJumpAttack
    from foolbox.criteria import Misclassification

    torch.manual_seed(SEED)
    model = PyTorchModel(problem.model, bounds=BOX, device="cpu")
    attack = HopSkipJumpAttack(steps=budget.rounds, initial_gradient_eval_steps=budget.directions)
    first = problem.nearest_start(starts) if starts else None
    found = torch.full_like(problem.x, torch.nan)
    for rows in torch.arange(len(problem.x)).split(len(problem.x) if together else 1):
        try:
            found[rows] = attack.run(
                model,
                problem.x[rows],
                Misclassification(problem.y[rows]),
                starting_points=None if first is None else first[rows],
            )
        except ValueError as error:
            if "init_attack failed" not in str(error) and "starting_points are not" not in str(error):
                raise
    return found


def spent(problem: Problem, search: Callable[[Problem], torch.Tensor]) -> dict[str, Any]:
    """Return the ``distance`` (K,) that ``search`` found (NaN where it found no point of another label), and what it
    took: ``queries`` and ``cpu_seconds`` a point."""
    problem.model.rows = 0
    began = time.process_time()
    points = search(problem)
    seconds, rows = time.process_time() - began, problem.model.rows
    distance = (points - problem.x).flatten(1).double().norm(dim=1)
    distance[~problem.across(points.nan_to_num())] = torch.nan
    return {"distance": distance, "queries": rows / len(problem.x), "cpu_seconds": seconds / len(problem.x)}


def matched(problem: Problem, search: Search, queries: int) -> Budget:
    """Return the budget with which ``search`` asks about ``queries`` a point, worked out from two short runs."""
    few, many = (spent(problem, partial(search, budget=Budget(rounds)))["queries"] for rounds in (2, 5))
    a_round = (many - few - (gradient(5) - gradient(2))) / 3
    fixed = few - gradient(2) - 2 * a_round
    rounds = min(range(1, 65), key=lambda t: abs(fixed + t * a_round + gradient(t) - queries))
    left = queries - fixed - rounds * a_round
    return Budget(rounds, max(1, round(100 * left / gradient(rounds))))


def gradient(rounds: int) -> int:
    """Return how many directions ``rounds`` rounds ask, with 100 in the first."""
    return sum(int(100 * t**0.5) for t in range(1, rounds + 1))
