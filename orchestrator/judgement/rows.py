"""The verdict of a run as data: whether anything leaks, how sure that is, whether controls held, and what to do.

``result.json`` has it as ``verdict``; the first screen of a page, the last lines on the terminal and every other reader
show the same. It is computed from the tables of the result alone, and no gate looks at it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from orchestrator.judgement.estimate import Estimate, keys

LEAK: Final = "leak"
NONE_SEEN: Final = "no leak seen"
UNTOLD: Final = "cannot be told"
DIFFERENT: Final = "significant difference"
"""The level of a comparison of runs, beside ``UNTOLD``."""
Level = Literal["leak", "no leak seen", "cannot be told", "significant difference"]
HELD: Final = "held"
FAILED: Final = "failed"
MISSING: Final = "not in this run"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found about one ``subject``, such as an unlearning method or the published model.

    ``level``: ``LEAK``, ``NONE_SEEN`` or ``UNTOLD`` (``why``). ``text``: the finding in words, without its subject.
    ``value`` is the ``metric`` of ``attack``, ``chance`` its value by guessing; ``seen_from``, of a null result: the
    smallest true value that a run of this size and noise would have found four times in five, None where it would have
    found none.
    """

    setting: str
    subject: str
    level: Level
    text: str = ""
    why: str = ""
    attack: str | None = None
    access: str | None = None
    metric: str = "auc"
    value: Estimate = field(default=Estimate(), metadata=keys("value", "low", "high"))
    chance: float | None = None
    seen_from: float | None = None


@dataclass(frozen=True, kw_only=True)
class Control:
    """A control, and how it came out: ``HELD``, ``FAILED`` or ``MISSING``.

    ``of``: ``truth`` for a control that shows that something is found only where there is something (if it fails, no
    finding counts), ``power`` for one that shows that a leak would be found (without it no null result counts),
    ``cells`` for one that voids single findings, which then say so themselves.
    """

    name: str
    of: Literal["truth", "power", "cells"]
    state: Literal["held", "failed", "not in this run"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer of a run.

    ``level``: the worst of the main setting's findings. ``too_small``: why the run means nothing, "" for others.
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
