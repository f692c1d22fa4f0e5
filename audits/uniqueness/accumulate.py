"""Gradient uniqueness along training: seen at checkpoints, or at every step among the points of its batch.

The bound of arXiv 2510.10902 sums GNQ over all steps, with S over all points at each. That costs one Gram matrix of all
points a step. Two ways to do with less, which are not comparable with each other:

- checkpoints: S over all points, every few steps; sums over the steps between by the trapezoid rule.
- in batch: S over the other points of the batch, at each step where the point occurs. There are few others, so values
  are larger, and the sum runs over the point's own steps only.

Nothing in the training loop is changed for it: the training set tells which rows are asked for, which happens once
before every step. Gradients are those of the points' own cross-entropy in eval mode: without augmentation, dropout,
label smoothing, clipping, momentum and weight decay, which are no functions of one point's gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import nn

from audits.arrays import Floats, Ids
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.gram import CHUNK, MEMORY
from audits.gradients.validate import made_auditable
from audits.seeds import torch_generator
from audits.training.fit import fit
from audits.training.loop import Observer, batches
from audits.training.recipe import Recipe
from audits.uniqueness.bits import log_uniqueness, trapezoid_weights
from audits.uniqueness.scores import Scores, check_modes, point_scores

Ask = Callable[[nn.Module, TensorSet], Scores]
State = dict[str, torch.Tensor]
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class InBatch:
    """Uniqueness among the points of a batch, summed over the steps where a point occurs; arrays (n,), n trained on.

    ``log`` and ``total``: mode → Σ ½·log2(1 + GNQ) and Σ GNQ, float64; ``steps``: how many steps that was, int64;
    ``doubts``: number of batches whose rank mode pinv was not certain of.
    """

    log: dict[str, Floats]
    total: dict[str, Floats]
    steps: Ids
    doubts: int


@dataclass(frozen=True)
class Trace:
    """Observations of N points at S checkpoints of one training, uniqueness among all N points.

    ``steps`` (S,) int64: optimiser steps taken before each, from 0 to the last; ``loss`` (nats), ``squared_norm``
    (‖g‖²) and each mode of ``gnq``: (S, N) float64; ``doubts`` (S,): see ``Scores.doubt``. ``in_batch``: the other
    way to accumulate, if asked for. ``twin_loss``, ``held_out_loss`` (N,) float64 nats, if asked for: controls that
    other models tell of the points, one trained on other points and k trained on halves of these.
    """

    steps: Ids
    loss: Floats
    squared_norm: Floats
    gnq: dict[str, Floats]
    doubts: tuple[str, ...]
    in_batch: InBatch | None = None
    twin_loss: Floats | None = None
    held_out_loss: Floats | None = None

    @property
    def weights(self) -> Floats:
        """Steps that each checkpoint stands for, (S,) float64; a single checkpoint counts once."""
        return trapezoid_weights(self.steps) if len(self.steps) > 1 else np.ones(1)


def steps_of(recipe: Recipe, points: int) -> int:
    """Return how many steps the training loop takes on ``points`` points by a recipe that is not private."""
    return recipe.epochs * len(batches(points, recipe.batch_size, torch_generator(0)))


def fit_traced(
    model: nn.Module,
    data: TensorSet,
    recipe: Recipe,
    *,
    seed: int,
    every: int,
    points: TensorSet | None = None,
    modes: tuple[str, ...] = ("ridge", "diagonal"),
    ridge: float = 1e-3,
    relative: bool = True,
    in_batch: bool = False,
    observers: tuple[Observer, ...] = (),
    chunk: int = CHUNK,
    memory: int = MEMORY,
) -> Trace:
    """Train ``model`` in place as ``fit`` does, to the same bits, and return what was seen on the way.

    Checkpoints: before the first step, after every ``every`` steps, and after the last. ``points``: N points that are
    watched at checkpoints, default the training set. ``in_batch`` sees every step too, which costs a Gram matrix of a
    batch each. Kept: (S, N) arrays alone, (2 + modes) · 8 S N bytes; beside them, while a checkpoint is seen, what
    ``point_scores`` holds (K: 8 N², its factor as much) and a copy of the model. ``modes``, ``ridge``, ``relative``,
    ``chunk``, ``memory``: as there. Raises BadInput for a private recipe and ``every`` below 1, and as ``fit`` and
    ``point_scores`` do.
    """
    check_traceable(recipe, every)
    check_modes(modes)

    def ask(seen: nn.Module, asked: TensorSet) -> Scores:
        return point_scores(made_auditable(seen), asked, modes, ridge, relative, chunk=chunk, memory=memory)

    watch = Watch(
        model, data, data if points is None else points, every, ask, Batches(data, modes) if in_batch else None
    )
    fit(model, Watched(data.x, data.y, watch.before_step), recipe, seed=seed, observers=observers)
    watch.checkpoint()
    return watch.trace()


def fit_kept(
    model: nn.Module,
    data: TensorSet,
    recipe: Recipe,
    *,
    seed: int,
    every: int,
    observers: tuple[Observer, ...] = (),
) -> dict[int, State]:
    """Train ``model`` in place as ``fit`` does, to the same bits; return the weights that ``fit_traced`` would look at.

    Steps taken → parameters and buffers by name, copied to the CPU, at each of ``checkpoint_steps``: so many models are
    held. Raises BadInput for a private recipe and ``every`` below 1, and as ``fit`` does.
    """
    check_traceable(recipe, every)
    kept = Checkpoints(model, every, state_of)
    fit(model, Watched(data.x, data.y, kept.before_step), recipe, seed=seed, observers=observers)
    kept.checkpoint()
    return dict(zip(kept.steps, kept.seen, strict=True))


def state_of(model: nn.Module) -> State:
    """Return a copy of a model's parameters and buffers on the CPU."""
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in model.state_dict().items()}


def checkpoint_steps(total: int, every: int) -> tuple[int, ...]:
    """Return the steps taken before each checkpoint of a training of ``total`` steps: 0, ``every``, …, ``total``."""
    return (*range(0, total, every), total)


def check_traceable(recipe: Recipe, every: int) -> None:
    """Refuse a private recipe and ``every`` below 1."""
    if recipe.private:
        raise BadInput("recipe is private, where a step is not made of one batch's gradients; trace an ordinary recipe")
    if every < 1:
        raise BadInput(f"every is {every}; it must be 1 or more (steps between checkpoints)")


@dataclass(frozen=True)
class Watched(TensorSet):
    """A training set that tells which rows are asked for, before it gives them out."""

    before: Callable[[torch.Tensor], None]

    def asked(self, rows: torch.Tensor | slice) -> None:
        """Tell the rows."""
        self.before(torch.arange(len(self), device=self.y.device)[rows])


class Batches:
    """Sums over steps of what the points of each batch are among themselves."""

    def __init__(self, data: TensorSet, modes: tuple[str, ...]) -> None:
        self.log = {mode: np.zeros(len(data)) for mode in modes}
        self.total = {mode: np.zeros(len(data)) for mode in modes}
        self.steps = np.zeros(len(data), np.int64)
        self.doubts = 0

    def add(self, rows: Ids, scores: Scores) -> None:
        """Take in the scores of the points ``rows`` of one batch, each of which occurs once."""
        for mode, gnq in scores.gnq.items():
            self.log[mode][rows] += log_uniqueness(gnq[None])
            self.total[mode][rows] += gnq
        self.steps[rows] += 1
        self.doubts += bool(scores.doubt)


class Checkpoints(Generic[Seen]):
    """Sees ``model`` through ``look`` before every ``every``-th step, and whenever it is told to."""

    def __init__(self, model: nn.Module, every: int, look: Callable[[nn.Module], Seen]) -> None:
        self.model, self.every, self.look = model, every, look
        self.taken = 0
        self.steps: list[int] = []
        self.seen: list[Seen] = []

    def before_step(self, rows: torch.Tensor) -> None:
        """Observe the model before a step on ``rows`` of the training set."""
        if self.taken % self.every == 0:
            self.checkpoint()
        self.taken += 1

    def checkpoint(self) -> None:
        """Observe the model at a checkpoint."""
        self.seen.append(self.look(self.model))
        self.steps.append(self.taken)


class Watch(Checkpoints[Scores]):
    """Sees ``model`` at checkpoints on ``points``, and with ``among`` at each step on the batch of ``data``."""

    def __init__(
        self, model: nn.Module, data: TensorSet, points: TensorSet, every: int, ask: Ask, among: Batches | None
    ) -> None:
        super().__init__(model, every, lambda seen: ask(seen, points))
        self.data, self.ask, self.among = data, ask, among

    def before_step(self, rows: torch.Tensor) -> None:
        """Observe the model before a step, and the points of its batch among themselves."""
        super().before_step(rows)
        if self.among is not None:
            batch = TensorSet(self.data.x[rows], self.data.y[rows])
            self.among.add(rows.cpu().numpy(), self.ask(self.model, batch))

    def trace(self) -> Trace:
        """Return what was seen."""
        among = self.among
        in_batch = None if among is None else InBatch(among.log, among.total, among.steps, among.doubts)
        return traced(self.steps, self.seen, in_batch)


def traced(steps: Sequence[int], seen: Sequence[Scores], in_batch: InBatch | None = None) -> Trace:
    """Return the trace of scores by the same modes ``seen`` at checkpoints after so many ``steps``."""
    return Trace(
        steps=np.array(steps, np.int64),
        loss=np.stack([scores.loss for scores in seen]),
        squared_norm=np.stack([scores.squared_norm for scores in seen]),
        gnq={mode: np.stack([scores.gnq[mode] for scores in seen]) for mode in seen[0].gnq},
        doubts=tuple(scores.doubt for scores in seen),
        in_batch=in_batch,
    )
