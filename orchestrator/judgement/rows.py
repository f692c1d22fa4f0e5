"""The rows of a judgement: controls, findings, and the verdict that they come to.

``result.json`` has the verdict as ``verdict``; the first screen of a page, the last lines on the terminal and every
other reader show the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from orchestrator.judgement.estimate import Estimate, keys

LEAK: Final = "leak"
NONE_SEEN: Final = "no leak seen"
UNTOLD: Final = "cannot be told"
DIFFERENT: Final = "significant difference"
"""The level of a comparison of runs, beside ``UNTOLD``."""
Level = Literal["leak", "no leak seen", "cannot be told", "significant difference"]
HELD: Final = "held"
FAILED: Final = "failed"
MISSING: Final = "missing"
State = Literal["held", "failed", "missing"]
FINDINGS: Final = "findings"
NULLS: Final = "null results"
RATES: Final = "rates"
Protects = Literal["findings", "null results", "rates"]
"""What means nothing where a control failed; ``rule`` has the table."""


class Source(NamedTuple):
    """Scores that a finding or a limit rests on: those of an ``attack`` on a ``subject`` in a ``setting``."""

    setting: str
    subject: str
    attack: str


class Row(BaseModel):
    """A row that is checked when it is made, and does not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def but(self, **changes: Any) -> Self:
        """Return the row with some fields changed."""
        return type(self)(**{**dict(self), **changes})


class Control(Row):
    """A control, and how it came out.

    ``name``: its term in the field, ``description``: what that is, "" where the term is plain. ``protects``: what means
    nothing where it failed: whatever is found (``findings``), what is not found (``null results``), or hit rates at
    promises that were not kept (``rates``).
    ``subject``: the unlearning method, arm or attack that it is about, "" for all of the ``setting``. ``attack``: whose
    ``evidence`` it is, an AUC or another ``metric``. ``lines``: whether it is about ``all`` scores of these, or only
    about those of its ``attack``.
    ``why``: how it came out, in a sentence, also where it held.
    """

    name: str
    description: str = ""
    protects: Protects
    state: State
    setting: str
    subject: str = ""
    attack: str | None = None
    lines: Literal["all", "attack"] = "all"
    evidence: Estimate = Estimate()
    metric: str = "auc"
    why: str

    def write(self) -> dict[str, Any]:
        """Return the control as result.json has it."""
        evidence = dict(zip(EVIDENCE, (self.evidence.value, self.evidence.low, self.evidence.high), strict=True))
        return {**self.model_dump(exclude={"evidence"}), **evidence}

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self:
        """Return a control of result.json."""
        plain = {name: value for name, value in raw.items() if name not in EVIDENCE}
        return cls(**plain, evidence=Estimate(*(raw[key] for key in EVIDENCE)))


EVIDENCE = tuple(f"evidence{end}" for end in Estimate.SUFFIXES)


class Finding(Row):
    """What was found about one ``subject``, such as an unlearning method or the published model.

    ``level``: ``LEAK``, ``NONE_SEEN`` or ``UNTOLD`` (``why``). ``text``: the finding in words, without its subject.
    ``value`` is the ``metric`` of ``attack``, ``chance`` its value by guessing; ``seen_from``, of a null result: the
    smallest true value that a run of this size and noise would have found four times in five, None where it would have
    found none. ``attacks``: those that it rests on, () for ``attack`` alone; ``controlled_by``: the name by which
    controls are about its subject, "" where none is about it alone.
    """

    setting: str
    subject: str
    level: Level
    text: str = ""
    why: str = ""
    attack: str | None = None
    access: str | None = None
    metric: str = "auc"
    value: Annotated[Estimate, keys("value", "low", "high")] = Estimate()
    chance: float | None = None
    seen_from: float | None = None
    attacks: tuple[str, ...] = ()
    controlled_by: str = ""

    @property
    def sources(self) -> frozenset[Source]:
        """The scores that it rests on."""
        attacks = self.attacks or (self.attack or "",)
        return frozenset(Source(self.setting, self.controlled_by, attack) for attack in attacks)


class Verdict(Row):
    """The answer of a run.

    ``level``: the worst of the main setting's findings. ``controls``: those of these findings, one row a name, the
    worst of them. ``too_small``: why the run means nothing, "" for others.
    ``about``: of a run of several settings, the main one, which headline and controls are about, and why it is that.
    """

    level: Level
    headline: str
    findings: tuple[Finding, ...]
    tested: str
    access: tuple[str, ...]
    certainty: str
    controls: tuple[Control, ...]
    advice: str
    too_small: str = ""
    about: str = ""
