"""Inputs at given log-odds of shadows that never saw the candidate, and how far down each model holds its label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from audits.apollo.evidence.asking import ask_targets
from audits.apollo.evidence.base import KINDS, Case, Group, Kind, Questions
from audits.apollo.evidence.parts import Part
from audits.apollo.evidence.plus import Ask, folded_forms, mean_log_odds, of_one, per_unit, shortened
from audits.apollo.evidence.settings import SearchSettings
from audits.arrays import Bools
from audits.memory import by_chunks
from audits.queries.access import Access
from audits.queries.boundary_walk import clip
from audits.queries.oracles import label_oracle

LEVELS = (3.0, 2.25, 1.5, 0.75, 0.0, -0.75, -1.5, -2.25, -3.0)
LABELS = 4
NEWTON_STEPS = 12


@dataclass(frozen=True)
class Positions(Part):
    """On how many levels of a path a model answers the true label, counted from the top, 0 … 9, int16.

    ``pseudo``: (m, K), of the unlearned online shadows of both halves; ``inside``: (m, K), had trained on the candidate
    and then unlearned it; ``outside``: (m, K), never saw it; ``apart``: (m,), of the half that did not draw the path,
    so that it shares no more data with it than a target does; ``target``: (K,); ``queries``: (K,) labels asked of the
    target.
    """

    access: ClassVar[Access] = "labels"
    axes: ClassVar[Mapping[str, int | None]] = {
        "pseudo": 1,
        "inside": 1,
        "outside": 1,
        "apart": None,
        "target": 0,
        "queries": 0,
    }
    shadows: ClassVar[Mapping[str, int]] = {"pseudo": 0, "inside": 0, "outside": 0, "apart": 0}

    pseudo: NDArray[np.int16]
    inside: Bools
    outside: Bools
    apart: Bools
    target: NDArray[np.int16]
    queries: NDArray[np.int32]


@KINDS.register("ladder")
@dataclass(frozen=True)
class Ladder(Kind):
    """A model's place on nine inputs at the log-odds 3 … −3 of y, found by bisection with four labels.

    The log-odds log p_y − log(1 − p_y) are means over the original offline shadows of the first half, which never saw a
    candidate; Newton's method leads from x to each level, by no step longer than Apollo's final radius. The path knows
    no unlearned model, so all methods share it.

    Ours: boundary distances (Choquette-Choo et al., arXiv 2007.14321) measured along one path for all models, in units
    of the shadows' log-odds; the ladder is that of ``plus``, without committees that know the candidate. The range of
    the levels, and that one half draws alone, were settled on seed 0 of fashion14.
    """

    part: ClassVar[type[Part]] = Positions
    draws: ClassVar[tuple[str, ...]] = ("offline",)
    traced: ClassVar[bool] = True

    def trace(self, case: Case) -> dict[str, NDArray[Any]]:
        """Return ``inputs`` (K, 9, dimensions), the path of the first half."""
        return {"inputs": path(case.offline_shadows[0], case).cpu().numpy()}

    def gather(self, case: Case) -> Positions:
        asked, halves = case.questions, case.shadows
        points = torch.from_numpy(case.trace["inputs"]).to(asked.x)
        asks = [of_one(label_oracle(model), asked) for group in halves for model in group.unlearned]
        return Positions(
            pseudo=np.stack([position(points, ask, asked) for ask in asks]),
            inside=np.concatenate([group.inside for group in halves]),
            outside=np.concatenate([group.outside for group in halves]),
            apart=np.repeat([False, True], [len(group.unlearned) for group in halves]),
            target=position(points, lambda at: ask_targets(case.labels, at, asked), asked),
            queries=np.full(len(asked.ids), LABELS, dtype=np.int32),
        )

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        """Return 4 queries a candidate."""
        return LABELS


def path(group: Group, case: Case) -> torch.Tensor:
    """Return the inputs (K, levels, dimensions) at which the original shadows of ``group`` have the ``LEVELS``."""
    asked, settings = case.questions, case.settings
    forms, count = folded_forms(group.original, asked), len(group.original)
    level = torch.tensor(LEVELS).to(asked.x)
    everyone = torch.arange(len(asked.x), device=asked.x.device)

    def walked(part: slice) -> torch.Tensor:
        rows = everyone[part]
        at = asked.x[rows, None].repeat(1, len(LEVELS), 1)
        weight = at.new_full((count, *at.shape[:2]), 1 / count)
        for _ in range(NEWTON_STEPS):
            odds, gradient = mean_log_odds(forms.now, weight, at, asked.y[rows], asked.shape)
            step = (level - odds)[..., None] * per_unit(gradient)
            at = clip(at + shortened(step, settings.epsilon * settings.steps), asked.value_range)
        return at

    return torch.cat(by_chunks(walked, len(asked.x), asked.chunk, forms.fewer))


def position(points: torch.Tensor, ask: Ask, asked: Questions) -> NDArray[np.int16]:
    """Return (K,): on how many of ``points`` (K, L, D) a model answers the true label, by bisection from the top.

    ``ask``: labels (K, 1) of points (K, 1, D); it is called ``LABELS`` times, enough for 2^LABELS − 1 levels. Answers
    are taken to change once along a path. A model whose place is found with fewer labels is asked again where it stands
    and the answer is not read, so that all models are asked alike.
    """
    low = torch.zeros(len(points), dtype=torch.int64, device=points.device)
    high, rows = torch.full_like(low, points.shape[1]), torch.arange(len(points), device=points.device)
    for _ in range(LABELS):
        middle = ((low + high) // 2).clamp(max=points.shape[1] - 1)
        holds, unsettled = ask(points[rows, middle][:, None])[:, 0] == asked.y, low < high
        low, high = (
            torch.where(unsettled & holds, middle + 1, low),
            torch.where(unsettled & ~holds, middle, high),
        )
    return np.asarray(low.cpu().numpy(), dtype=np.int16)
