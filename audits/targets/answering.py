"""A model of which only answers are known, as a module: what follows cannot tell it from one in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import nn

from audits.errors import BadInput
from audits.queries.served.json_path import Unreadable
from audits.queries.served.reading import SLACK, Reading


class Answering(nn.Module):
    """Scores (N, classes) float32 of a model that is asked through ``ask``; it has no parameters and no gradients.

    ``name``: what the plan calls it; ``asked(n)`` is told of each n inputs that somebody asks about.
    """

    def __init__(
        self,
        ask: Callable[[torch.Tensor], Sequence[Any]],
        reading: Reading,
        name: str,
        asked: Callable[[int], None] = lambda count: None,
    ) -> None:
        super().__init__()
        self.ask, self.reading, self.name, self.asked = ask, reading, name, asked

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the model itself: it has nothing that could change, and one connection."""
        return self

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of inputs (N, ...), on their device; raises BadInput for answers that cannot be read."""
        self.asked(len(x))
        try:
            found = scores(self.ask(x), self.reading)
        except Unreadable as error:  # of a program, a record or a table; a server's are checked before they are kept
            raise BadInput(f"target.weights: {self.name} answered {error} (target.served)") from None
        if self.reading.gives == "logits":
            check_logits(found, self.name)
        return found.to(x.device)


def scores(answers: Sequence[Any], reading: Reading) -> torch.Tensor:
    """Return answers as scores (N, classes) float32 from which the rest follows.

    Logits as they are given, logarithms of probabilities, and for a label 1 at its class and 0 elsewhere.
    """
    if reading.gives == "labels":
        return F.one_hot(torch.from_numpy(reading.labels(answers)), reading.classes).float()
    if reading.gives == "logits":
        return torch.from_numpy(reading.scores(answers)).float()
    return reading.log_probabilities(answers).float()


def check_logits(found: torch.Tensor, name: str) -> None:
    """Refuse scores that are called logits and look like probabilities: rows that add up to 1, several of them."""
    adds_up = (found >= 0).all(1) & ((found.double().sum(1) - 1).abs() < SLACK)
    if len(found) > 1 and bool(adds_up.all()):
        raise BadInput(
            f"target.weights: {name} gives probabilities (rows that add up to 1), not logits; say target.served.gives: "
            "probabilities"
        )
