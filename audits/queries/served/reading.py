"""Answers of a served model read as labels, probabilities or logits, and refused where they are none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.errors import BadInput, did_you_mean
from audits.queries.served.json_path import Unreadable, kind

GIVES = ("labels", "probabilities", "log_probabilities", "logits")
SLACK = 1e-3
"""How far the sum of probabilities may be from 1 without declared rounding: what half precision leaves."""
FLOAT32 = 2.0**-23
"""How far a rounded probability may be from its decimals: what float32 leaves."""
SMALLEST = 2.0**-149
"""The smallest positive float32: what a probability of 0 is taken for without declared rounding."""


@dataclass(frozen=True)
class Reading:
    """What a server gives for each input, and how many ``classes`` there are.

    ``class_names``: the server's names of the classes, in the order of the indices or as name → index. Labels are then
    looked up by name, and posteriors may be objects by name; without names these objects are by "0", "1", ….
    ``decimals``: digits after the point to which the server rounds probabilities, if it does.
    """

    classes: int
    gives: Literal["labels", "probabilities", "log_probabilities", "logits"] = "labels"
    class_names: Sequence[str] | Mapping[str, int] | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        if self.gives not in GIVES:
            raise BadInput(f"gives is {self.gives!r}; it is one of {', '.join(GIVES)}{did_you_mean(self.gives, GIVES)}")
        if self.classes < 2:
            raise BadInput(f"classes is {self.classes}; a classifier has 2 or more")
        if self.decimals is not None and (self.gives != "probabilities" or not 1 <= self.decimals <= 15):
            raise BadInput(f"decimals is {self.decimals} for {self.gives}; it is 1 to 15, for probabilities only")
        names = self.class_names
        if names is not None and not isinstance(names, Mapping):
            if isinstance(names, str) or len(names) != self.classes or len(set(names)) != self.classes:
                raise BadInput(f"class_names must be {self.classes} different names, one for each class")
            names = {name: index for index, name in enumerate(names)}
        if names is not None:
            outside = [name for name, index in names.items() if not 0 <= index < self.classes]
            if outside:
                raise BadInput(f"class_names maps {outside[0]!r} to {names[outside[0]]}, not to 0…{self.classes - 1}")
            object.__setattr__(self, "class_names", {str(name): int(index) for name, index in names.items()})

    @property
    def described(self) -> dict[str, Any]:
        """The reading as JSON, for the record."""
        return asdict(self)

    def check(self, answers: Sequence[Any]) -> None:
        """Raise Unreadable unless all ``answers`` can be read."""
        self.labels(answers)

    def labels(self, answers: Sequence[Any]) -> NDArray[np.int64]:
        """Return labels (N,): those given, or the first largest of each row of scores."""
        if self.gives != "labels":
            return torch.from_numpy(self.scores(answers)).argmax(1).numpy()
        return np.array([self.label(answer) for answer in answers], dtype=np.int64)

    def label(self, answer: Any) -> int:
        """Return the index of one label."""
        if self.class_names is not None:
            assert isinstance(self.class_names, Mapping)
            if isinstance(answer, bool | list | dict) or answer is None or str(answer) not in self.class_names:
                few = ", ".join(map(repr, list(self.class_names)[:5])) + (" …" if len(self.class_names) > 5 else "")
                near = did_you_mean(str(answer), self.class_names)
                raise Unreadable(f"the label {shortly(answer)}, which class_names does not hold{near}; it holds {few}")
            return self.class_names[str(answer)]
        if isinstance(answer, str):
            raise Unreadable(f"the label {shortly(answer)}, a name; give class_names, which maps names to indices")
        if isinstance(answer, bool) or not isinstance(answer, int | float) or answer != answer // 1:
            raise Unreadable(f"{kind(answer)}, {shortly(answer)}, which is no label; see gives, and answers")
        if not 0 <= answer < self.classes:
            raise Unreadable(f"the label {shortly(answer)}; labels are 0…{self.classes - 1}; see classes")
        return int(answer)

    def scores(self, answers: Sequence[Any]) -> Floats:
        """Return the scores (N, classes) as the server gave them, checked."""
        if self.gives == "labels":
            raise BadInput("the server is said to give labels; posteriors need gives=probabilities or logits")
        rows = [self.row(answer) for answer in answers]
        try:
            found = np.array(rows, dtype=np.float64).reshape(len(rows), self.classes)
        except OverflowError:
            raise Unreadable("a number that is too large for a score") from None
        if not np.isfinite(found).all():
            raise Unreadable(f"NaN or infinity for input {np.flatnonzero(~np.isfinite(found).all(1))[0]}")
        if self.gives == "probabilities":
            self.check_probabilities(found)
        elif self.gives == "log_probabilities":
            if (found > SLACK).any():
                raise Unreadable(f"the log-probability {found.max():g}, above 0; see gives")
            self.check_sums(np.exp(found))
        return found

    def row(self, answer: Any) -> Sequence[float]:
        """Return the scores of one input, in the order of the classes."""
        if isinstance(answer, dict):
            answer = self.in_order(answer)
        if not isinstance(answer, list):
            raise Unreadable(f"{kind(answer)}, {shortly(answer)}, for an input, not a list of {self.classes} scores")
        if len(answer) != self.classes:
            raise Unreadable(f"{len(answer)} scores for an input; there are {self.classes} classes")
        if wrong := [value for value in answer if type(value) not in (int, float)]:
            raise Unreadable(f"{kind(wrong[0])}, {shortly(wrong[0])}, as a score")
        return answer

    def in_order(self, answer: Mapping[str, Any]) -> list[Any]:
        """Return scores given by name in the order of the classes."""
        names = self.class_names or {str(index): index for index in range(self.classes)}
        assert isinstance(names, Mapping)
        if sorted(names.values()) != list(range(self.classes)):
            raise BadInput(f"scores by name need class_names that give each of {self.classes} classes one name")
        if unknown := [name for name in answer if name not in names]:
            few = ", ".join(map(repr, list(names)[:5]))
            raise Unreadable(f"a score for {shortly(unknown[0])}; classes are called {few}; see class_names")
        if len(answer) < self.classes:
            raise Unreadable(f"{len(answer)} scores for an input; there are {self.classes} classes")
        return [answer[name] for name in sorted(names, key=lambda name: names[name])]

    def check_probabilities(self, found: Floats) -> None:
        """Refuse what is no probability, does not add up to 1, or has more digits than declared."""
        if (found < 0).any() or (found > 1 + SLACK).any():
            worst = found.min() if (found < 0).any() else found.max()
            raise Unreadable(f"the probability {worst:g}; if these are logits, say gives=logits")
        self.check_sums(found)
        if self.decimals is not None:
            digits = found * 10.0**self.decimals
            off = np.abs(digits - digits.round()) > FLOAT32 * 10.0**self.decimals + 1e-9
            if off.any():
                raise Unreadable(f"the probability {float(found[off][0])!r}, not rounded to {self.decimals} decimals")

    def check_sums(self, found: Floats) -> None:
        """Refuse rows of probabilities that do not add up to 1, within rounding."""
        slack = SLACK if self.decimals is None else SLACK + self.classes * 10.0**-self.decimals
        sums = found.sum(1)
        off = np.abs(sums - 1) > slack
        if off.any():
            row = int(np.flatnonzero(off)[0])
            raise Unreadable(
                f"probabilities that add up to {sums[row]:.6g} for input {row}; if it rounds, give decimals; "
                "if these are logits, say gives=logits"
            )

    def log_probabilities(self, answers: Sequence[Any]) -> torch.Tensor:
        """Return log-probabilities (N, classes) in float64.

        A probability of 0 is taken for the largest that is shown as 0: half a unit of the last decimal, or the smallest
        float32 without declared rounding.
        """
        scores = torch.from_numpy(self.scores(answers))
        if self.gives == "logits":
            return F.log_softmax(scores, dim=1)
        if self.gives == "log_probabilities":
            return scores
        least = SMALLEST if self.decimals is None else 0.5 * math.pow(10.0, -self.decimals)
        return scores.clamp_min(least).log()


def shortly(value: Any, limit: int = 60) -> str:
    """Return a value in at most ``limit`` characters."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
