"""The outcome of a result at the limits of its release gate, as result.json keeps it and messages tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from orchestrator.judgement.rows import Control

PASSED: Final = "passed"
FAILED: Final = "failed"
INCONCLUSIVE: Final = "inconclusive"
Outcome = Literal["passed", "failed", "inconclusive"]
OfGate = Literal["passed", "failed", "inconclusive", ""]


@dataclass(frozen=True)
class LimitResult:
    """How a result stands to one limit.

    ``limit``: as it was given, METRIC=VALUE; ``metric`` and ``at_most`` are its parts. ``value``: the worst number that
    it looks at, ``where``: whose that is (None and "" where nothing was measured; None and whose where all that was is
    void). ``outcome``: passed, failed or
    inconclusive; ``reasons``: why it is not passed, one sentence each.
    """

    limit: str
    metric: str
    at_most: float
    value: float | None
    where: str
    outcome: Outcome
    reasons: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the limit is on: the limit as it was given, without the number."""
        return self.limit.partition("=")[0]

    @property
    def void(self) -> bool:
        """Whether all that it looks at was measured in vain, because promised rates were not kept."""
        return self.value is None and bool(self.where)

    @property
    def decimals(self) -> int:
        """With how many decimals, three at the least, the number found is seen to be above the limit, or not to be."""
        if self.value is None:
            return 3
        above = self.value > self.at_most
        return next((count for count in range(3, 17) if (round(self.value, count) > self.at_most) == above), 17)

    def sentence(self) -> str:
        """Return the line that tells the outcome, with all reasons."""
        return f"gate {self.limit}: {self.outcome}: {self.why}"

    @property
    def why(self) -> str:
        """The reasons, and the number that was found where none of them says it."""
        said = bool(self.reasons) and (self.value is None or self.value > self.at_most)
        return "; ".join(self.reasons if said else (*self.reasons, self.value_in_words()))

    def value_in_words(self) -> str:
        """Return the number that was found, in words."""
        if self.value is None:
            return f"{self.metric} is void ({self.where})" if self.void else "nothing was measured"
        return f"{self.metric} is {self.value:.{self.decimals}f} ({self.where})"

    def above(self) -> str:
        """Return the reason that a number above the limit is."""
        return f"{self.value_in_words()}, above {self.at_most:g}"


def outcome_of(limits: Iterable[LimitResult]) -> OfGate:
    """Return the outcome of a gate: failed, else inconclusive, if one of its limits is; "" without limits."""
    found = {limit.outcome for limit in limits}
    return next((outcome for outcome in (FAILED, INCONCLUSIVE, PASSED) if outcome in found), "")


def trial_warning(document: Mapping[str, Any]) -> str:
    """Return that the gate of a result (the content of result.json) means nothing, where it is that of a trial run.

    "" for other results and without a gate. The outcome stays as it is.
    """
    small = (document.get("verdict") or {}).get("too_small")
    if not (small and GateResult.of(document).limits):
        return ""
    return f"warning: this is a trial run ({small}): its gate says nothing about a release; use a full plan"


@dataclass(frozen=True)
class GateResult:
    """How a result stands to every limit, and the ``controls`` of their lines, a row a name; ``outcome``: of all."""

    outcome: OfGate = ""
    limits: tuple[LimitResult, ...] = ()
    controls: tuple[Control, ...] = ()

    def lines(self) -> list[str]:
        """Return a line about every limit, those that are not passed last."""
        return [limit.sentence() for limit in sorted(self.limits, key=lambda limit: limit.outcome != PASSED)]

    def metrics(self) -> dict[str, float]:
        """Return the numbers that a tracker keeps: whether the gate is passed, and what each limit looks at."""
        if not self.limits:
            return {}
        found = {f"gate.{limit.name}": limit.value for limit in self.limits if limit.value is not None}
        return {**found, "gate.passed": float(self.outcome == PASSED)}

    def tags(self) -> dict[str, str]:
        """Return what a tracker keeps as words: the outcome of the gate, and that of each limit with its reasons."""
        told: dict[str, list[str]] = {}
        for limit in self.limits:  # several may be on the same number
            told.setdefault(f"orch.gate.{limit.name}", []).append(limit.sentence())
        return {"orch.gate": self.outcome, **{key: "; ".join(each) for key, each in told.items()}} if told else {}

    def to_json(self) -> dict[str, Any]:
        """Return ``gate`` of result.json."""
        return {
            "outcome": self.outcome,
            "limits": [{**asdict(limit), "reasons": list(limit.reasons)} for limit in self.limits],
            "controls": [control.write() for control in self.controls],
        }

    @staticmethod
    def of(document: Mapping[str, Any]) -> GateResult:
        """Return the gate that a result (the content of result.json) was put to; one without limits if none was."""
        told = document.get("gate")
        if not told:
            return GateResult()
        limits = (LimitResult(**{**limit, "reasons": tuple(limit["reasons"])}) for limit in told["limits"])
        return GateResult(told["outcome"], tuple(limits), tuple(map(Control.of, told["controls"])))
