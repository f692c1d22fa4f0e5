"""Oracles: a target's answers to queries, counted point by point, within a budget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from audits.errors import BadInput
from audits.memory import by_chunks

Answer = Callable[[torch.Tensor], torch.Tensor]


class Counter:
    """Queries per point: ``count`` adds them and refuses to go over ``budget`` queries for any one point."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self._asked: dict[int, int] = {}

    def count(self, point_ids: NDArray[np.int64], queries: int) -> None:
        """Note ``queries`` more for each of ``point_ids``; raises ``BadInput`` before any of them is asked."""
        points, times = np.unique(point_ids, return_counts=True)
        totals = {
            int(point): self._asked.get(int(point), 0) + int(count) * queries
            for point, count in zip(points, times, strict=True)
        }
        if self.budget is not None and any(total > self.budget for total in totals.values()):
            raise BadInput(
                f"{max(totals.values())} queries per point are over the budget of {self.budget}; "
                "lower audit.search.steps or raise the budget"
            )
        self._asked.update(totals)

    def queries_spent(self, point_ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the queries spent on each of ``point_ids`` so far."""
        return np.array([self._asked.get(int(point), 0) for point in point_ids], dtype=np.int32)


class LabelOracle:
    """Label-only access: nothing but predicted labels comes out, and every query is counted.

    ``answer`` maps inputs (N, ...) to labels (N,) int64. It is captured by the method's closure: the oracle keeps no
    reference from which a model, a logit or a posterior could be reached by name.
    """

    __slots__ = ("ask", "counter")

    def __init__(self, answer: Answer, budget: int | None = None) -> None:
        counter = Counter(budget)

        def ask(points: torch.Tensor, point_ids: NDArray[np.int64]) -> torch.Tensor:
            """Return the labels (K, Q) of ``points`` (K, Q, ...), Q queries for each of the K ``point_ids``."""
            counter.count(point_ids, points.shape[1])
            found = answer(points.flatten(0, 1))
            if found.dtype != torch.int64 or found.shape != (points.shape[0] * points.shape[1],):
                raise ValueError(f"a label oracle answered {tuple(found.shape)} {found.dtype}; it must be (N,) int64")
            return found.reshape(points.shape[:2])

        self.counter = counter
        self.ask = ask


class PosteriorOracle:
    """Access to outputs, log-probabilities or logits: ``ask`` returns (K, classes), one counted query per point."""

    __slots__ = ("ask", "counter")

    def __init__(self, answer: Answer, budget: int | None = None) -> None:
        counter = Counter(budget)

        def ask(points: torch.Tensor, point_ids: NDArray[np.int64]) -> torch.Tensor:
            """Return the outputs (K, classes) of ``points`` (K, ...)."""
            counter.count(point_ids, 1)
            return answer(points)

        self.counter = counter
        self.ask = ask


def label_oracle(model: nn.Module, budget: int | None = None, chunk: int = 1024) -> LabelOracle:
    """Return label-only access to a model in this process, asked in chunks of ``chunk`` inputs (``by_chunks``)."""

    @torch.no_grad()
    def answer(points: torch.Tensor) -> torch.Tensor:
        return torch.cat(by_chunks(lambda rows: model(points[rows]).argmax(1), len(points), chunk))

    return LabelOracle(answer, budget)


def posterior_oracle(model: nn.Module, budget: int | None = None, chunk: int = 1024) -> PosteriorOracle:
    """Return access to a local model's log-probabilities in float64."""

    @torch.no_grad()
    def answer(points: torch.Tensor) -> torch.Tensor:
        return torch.cat(by_chunks(lambda rows: F.log_softmax(model(points[rows]).double(), dim=1), len(points), chunk))

    return PosteriorOracle(answer, budget)


def logit_oracle(model: nn.Module, budget: int | None = None, chunk: int = 1024) -> PosteriorOracle:
    """Return access to a local model's logits in float64: what no service shows that answers with posteriors."""

    @torch.no_grad()
    def answer(points: torch.Tensor) -> torch.Tensor:
        return torch.cat(by_chunks(lambda rows: model(points[rows]).double(), len(points), chunk))

    return PosteriorOracle(answer, budget)
