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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from audits.arrays import Floats, Ids
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.gram import CHUNK, MEMORY
from audits.gradients.validate import made_auditable
from audits.seeds import torch_generator
from audits.training.fit import fit
from audits.training.keeper import NEVER, Beside, Keeper
from audits.training.loop import Observer, batches
from audits.training.recipe import Recipe
from audits.training.team import ALONE, Team
from audits.uniqueness.bits import trapezoid_weights
from audits.uniqueness.checkpoints import Batches, State, Watch, Watched, Weights
from audits.uniqueness.scores import Scores, check_modes, point_scores


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
    keeper: Keeper = NEVER,
    team: Team = ALONE,
) -> Trace:
    """Train ``model`` in place as ``fit`` does, to the same bits, and return what was seen on the way.

    Checkpoints: before the first step, after every ``every`` steps, and after the last. ``points``: N points that are
    watched at checkpoints, default the training set. ``in_batch`` sees every step too, which costs a Gram matrix of a
    batch each. Kept: (S, N) arrays alone, (2 + modes) · 8 S N bytes; beside them, while a checkpoint is seen, what
    ``point_scores`` holds (K: 8 N², its factor as much) and a copy of the model. ``modes``, ``ridge``, ``relative``,
    ``chunk``, ``memory``: as there; ``keeper``, ``team``: as in ``fit``; the keeper keeps what was seen, too, and every
    worker of a team looks at all points. Raises BadInput for a private recipe and ``every`` below 1, and as ``fit`` and
    ``point_scores`` do.
    """
    check_traceable(recipe, every)
    check_modes(modes)

    def ask(seen: nn.Module, asked: TensorSet) -> Scores:
        return point_scores(made_auditable(seen), asked, modes, ridge, relative, chunk=chunk, memory=memory)

    among = Batches(data, modes) if in_batch else None
    watch = Watch(model, data, data if points is None else points, every, ask, among)
    watched = Watched(data.x, data.y, watch.before_step, encoded=data.encoded)
    keeper = Beside(keeper, "seen", watch)
    fit(model, watched, recipe, seed=seed, observers=observers, keeper=keeper, team=team)
    watch.checkpoint()
    in_batch_sums = None if among is None else InBatch(among.log, among.total, among.steps, among.doubts)
    return traced(watch.steps, watch.seen, in_batch_sums)


def fit_kept(
    model: nn.Module,
    data: TensorSet,
    recipe: Recipe,
    *,
    seed: int,
    every: int,
    observers: tuple[Observer, ...] = (),
    keeper: Keeper = NEVER,
    team: Team = ALONE,
) -> dict[int, State]:
    """Train ``model`` in place as ``fit`` does, to the same bits; return the weights that ``fit_traced`` would look at.

    Steps taken → parameters and buffers by name, copied to the CPU, at each of ``checkpoint_steps``: so many models are
    held, and kept by ``keeper``. Raises BadInput for a private recipe and ``every`` below 1, and as ``fit`` does.
    """
    check_traceable(recipe, every)
    kept = Weights(model, every, state_of)
    watched = Watched(data.x, data.y, kept.before_step, encoded=data.encoded)
    keeper = Beside(keeper, "seen", kept)
    fit(model, watched, recipe, seed=seed, observers=observers, keeper=keeper, team=team)
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
