"""Ladders of inputs across the decision boundaries of committees of shadows, and each model's place on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from audits.apollo.evidence.asking import ask_targets
from audits.apollo.evidence.base import KINDS, Case, Group, Kind, Questions
from audits.apollo.evidence.parts import Part
from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import folded
from audits.arrays import Bools
from audits.memory import Forms, by_chunks
from audits.models.stacked import Stacked, stacked
from audits.queries.access import Access
from audits.queries.boundary_walk import clip
from audits.queries.oracles import LabelOracle, label_oracle

Ask = Callable[[torch.Tensor], torch.Tensor]

COMMITTEES = 5
MOST_LABELS = 6
WIDEST = 2.5
NEWTON_STEPS = 8


@dataclass(frozen=True)
class Standings(Part):
    """Rungs of each committee's ladder of inputs down to which a model answers the true label, 0 … 2^k − 1.

    Committees of group g built ladder g; the shadows of the other group are its pseudo-targets. ``pseudo``:
    (2, n, K, S) int16; ``inside``: (2, n, K), had trained on the candidate and then unlearned it; ``outside``:
    (2, n, K), never saw it; ``target``: (2, K, S) int16; ``queries``: (K,) labels asked of the target.
    """

    access: ClassVar[Access] = "labels"
    axes: ClassVar[Mapping[str, int | None]] = {"pseudo": 2, "inside": 2, "outside": 2, "target": 1, "queries": 0}
    shadows: ClassVar[Mapping[str, int]] = {"pseudo": 1, "inside": 1, "outside": 1}

    pseudo: NDArray[np.int16]
    inside: Bools
    outside: Bools
    target: NDArray[np.int16]
    queries: NDArray[np.int32]


@dataclass(frozen=True)
class Ladders:
    """S ladders a candidate: ``foot`` (K, S, D), inputs at which a committee is undecided; ``rung`` (K, S, D), the way
    from there that lowers the committee's mean log-odds of y by 1, to first order."""

    foot: torch.Tensor
    rung: torch.Tensor


@KINDS.register("plus")
@dataclass(frozen=True)
class Plus(Kind):
    """A target's place between "forgotten" and "never seen", bisected on ladders of S = 5 committees of each half.

    Committee 1 are all unlearned shadows of a half, the others a quarter of its complementary pairs each (they repeat
    in a half of fewer than 8 shadows). Newton's method leads from x to where a committee's mean log-odds of y is 0.
    There a target that is like the mean of shadows with and without the candidate changes its label, one that has seen
    it later, one that has not earlier. k labels find its place among 2^k − 1 rungs between +2.5 and −2.5 of the
    committee's log-odds. No more labels than Apollo: S·k ≤ 2T a half.
    """

    part: ClassVar[type[Part]] = Standings

    def gather(self, case: Case) -> Standings:
        asked, (first, second) = case.questions, case.shadows
        _, labels = ladder_sizes(case.settings)
        pseudo, target = [], []
        for own, judge in ((first, second), (second, first)):
            ladders = built(own, case)
            asks = [of_one(label_oracle(model), asked) for model in judge.unlearned]
            pseudo.append(np.stack([standing(ladders, ask, asked, labels) for ask in asks]))
            target.append(standing(ladders, lambda points: ask_targets(case.labels, points, asked), asked, labels))
        return Standings(
            pseudo=np.stack(pseudo),
            inside=np.stack([second.inside, first.inside]),
            outside=np.stack([second.outside, first.outside]),
            target=np.stack(target),
            queries=np.full(len(asked.ids), self.queries(case.settings, case.budget), dtype=np.int32),
        )

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        committees, labels = ladder_sizes(settings)
        return 2 * committees * labels


def ladder_sizes(settings: SearchSettings) -> tuple[int, int]:
    """Return the number of committees S a half and of labels k a ladder: S·k ≤ 2T."""
    committees = min(settings.steps, COMMITTEES)
    return committees, min(2 * settings.steps // committees, MOST_LABELS)


def of_one(oracle: LabelOracle, asked: Questions) -> Ask:
    """Return the labels (K, S) of one model at points (K, S, D)."""
    return lambda points: oracle.ask(points.unflatten(-1, asked.shape), asked.ids)


def standing(ladders: Ladders, ask: Ask, asked: Questions, labels: int) -> NDArray[np.int16]:
    """Return (K, S): on how many of 2^labels − 1 rungs a model answers the true label, by bisection from the top.

    ``ask``: labels (K, S) of points (K, S, D); it is called ``labels`` times.
    """
    rungs = 2**labels - 1
    passed = torch.zeros(ladders.foot.shape[:2], dtype=torch.int64, device=asked.x.device)
    for turn in range(labels):
        middle = passed + 2 ** (labels - 1 - turn) - 1
        height = WIDEST * (2 * middle / (rungs - 1) - 1) if rungs > 1 else 0.0 * middle
        points = clip(ladders.foot + height[..., None].to(ladders.foot) * ladders.rung, asked.value_range)
        says_true = ask(points) == asked.y[:, None]
        passed = torch.where(says_true, middle + 1, passed)
    return np.asarray(passed.cpu().numpy(), dtype=np.int16)


def built(group: Group, case: Case) -> Ladders:
    """Return the ladders of the committees of one half for all candidates."""
    asked, settings = case.questions, case.settings
    forms = folded_forms(group.unlearned, asked)
    seats = torch.from_numpy(committees_of(group, ladder_sizes(settings)[0])).to(asked.x)
    everyone = torch.arange(len(asked.x), device=asked.x.device)

    def climbed(part: slice) -> Ladders:
        rows = everyone[part]
        return ladders_of(forms.now, seats[..., rows.cpu()], asked, rows, settings.epsilon * settings.steps)

    parts = by_chunks(climbed, len(asked.x), asked.chunk, forms.fewer)
    return Ladders(torch.cat([part.foot for part in parts]), torch.cat([part.rung for part in parts]))


def folded_forms(models: Sequence[nn.Module], asked: Questions) -> Forms[Sequence[nn.Module] | Stacked]:
    """Return ``models`` with BatchNorm folded away, as one where that is better, and apart where memory is scarce."""
    found = [folded(model) for model in models]
    at_once = stacked(found, asked.x[:1].unflatten(-1, asked.shape))
    return Forms(found) if at_once is None else Forms(at_once, found)


def committees_of(group: Group, count: int) -> Bools:
    """Return (S, m, K): does shadow i sit in committee s when candidate k is asked? Nobody sits who kept it.

    A committee in which nobody is left is made of all.
    """
    models = np.arange(len(group.unlearned))
    pairs = max(1, len(models) // 2)
    parts = max(1, min(count - 1, pairs))
    part_of = models // 2 % pairs % parts
    quarters = [part_of == seat % parts for seat in range(count - 1)]
    asked = group.inside | group.outside
    found = np.stack([np.ones(len(models), dtype=bool), *quarters])[..., None] & asked
    return np.where(found.any(1, keepdims=True), found, asked)


def ladders_of(
    models: Sequence[nn.Module] | Stacked, seats: torch.Tensor, asked: Questions, rows: torch.Tensor, longest: float
) -> Ladders:
    """Return the ladders of the candidates ``rows`` for ``seats`` (S, m, k); no step is longer than ``longest``."""
    weight = (seats / seats.sum(1, keepdim=True)).permute(1, 2, 0)
    foot = asked.x[rows, None].expand(-1, len(seats), -1)
    for _ in range(NEWTON_STEPS):
        odds, gradient = mean_log_odds(models, weight, foot, asked.y[rows], asked.shape)
        foot = clip(foot + shortened(-odds[..., None] * per_unit(gradient), longest), asked.value_range)
    _, gradient = mean_log_odds(models, weight, foot, asked.y[rows], asked.shape)
    return Ladders(foot, shortened(-per_unit(gradient), longest))


def mean_log_odds(
    models: Sequence[nn.Module] | Stacked,
    weight: torch.Tensor,
    points: torch.Tensor,
    y: torch.Tensor,
    shape: tuple[int, ...],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weighted mean over models of log p_y − log(1 − p_y) at ``points`` (k, S, D) and its gradient.

    ``weight``: (m, k, S), summing to 1 over the models.
    """
    if isinstance(models, Stacked):
        with torch.enable_grad():
            at = points.detach().requires_grad_(True)
            output = models.same(at.reshape(-1, *shape)).flatten(0, 1)
            truth = y[:, None].expand(weight.shape).reshape(-1)
            odds = (log_odds(output, truth).reshape(weight.shape) * weight).sum(0)
            (gradient,) = torch.autograd.grad(odds.sum(), at)
        return odds.detach(), gradient
    value, gradient = points.new_zeros(points.shape[:2]), torch.zeros_like(points)
    truth = y[:, None].expand(points.shape[:2])
    for model, own in zip(models, weight, strict=True):
        seat = seats_of(own)
        if len(seat[0]) == 0:
            continue
        with torch.enable_grad():
            at = points[seat].detach().requires_grad_(True)
            output = model(at.reshape(-1, *shape))
            odds = log_odds(output, truth[seat]) * own[seat]
            (found,) = torch.autograd.grad(odds.sum(), at)
        value[seat] += odds.detach()
        gradient[seat] += found
    return value, gradient


def log_odds(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return log p_y − log(1 − p_y) (N,) of logits (N, classes)."""
    true = y[:, None] == torch.arange(output.shape[1], device=output.device)
    others = output.masked_fill(true, -torch.inf).logsumexp(1)
    return output.masked_fill(~true, 0.0).sum(1) - others


def seats_of(weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the places at which a model weighs something: the others would add nothing.

    All places on a GPU, which would let the host wait for the answer in every step.
    """
    if weight.is_cuda:
        rows, columns = (torch.arange(size, device=weight.device) for size in weight.shape)
        return rows.repeat_interleave(len(columns)), columns.repeat(len(rows))
    return weight.nonzero(as_tuple=True)


def per_unit(gradient: torch.Tensor) -> torch.Tensor:
    """Return the shortest step (…, D) along ``gradient`` that raises the function by 1, to first order."""
    square = (gradient * gradient).sum(-1, keepdim=True)
    step: torch.Tensor = gradient / square.clamp_min(torch.finfo(gradient.dtype).eps)
    return step


def shortened(step: torch.Tensor, longest: float) -> torch.Tensor:
    """Return ``step`` (…, D), no longer than ``longest``."""
    norm = torch.linalg.vector_norm(step, dim=-1, keepdim=True)
    short: torch.Tensor = step * (longest / norm.clamp_min(torch.finfo(step.dtype).tiny)).clamp_max(1.0)
    return short
