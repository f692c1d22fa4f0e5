"""The rule by which findings and controls become a verdict, and controls hold limits: the same for all audits.

What rests on a control that failed or is missing means nothing:

=============  ====================  ====================
protects       failed                missing
=============  ====================  ====================
findings       leaks, null results   null results
null results   null results          null results
rates          null results          nothing
=============  ====================  ====================

A null result is no leak seen, or a value below a limit; a leak is one seen, or a value above a limit. Rates that are
broken are no values in the first place, so that a leak that rests on other numbers stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from audits.errors import how_many
from audits.statistics.intervals import student_quantile
from audits.statistics.power import detectable_auc, detectable_shift
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import (
    FAILED,
    FINDINGS,
    HELD,
    LEAK,
    MISSING,
    NONE_SEEN,
    RATES,
    UNTOLD,
    Control,
    Finding,
    Level,
    Source,
    State,
    Verdict,
)
from orchestrator.judgement.wording import (
    FOUR_IN_FIVE,
    MOST_NAMED,
    SEEN,
    SMALL,
    Wording,
    called,
    headline,
    leaky_elsewhere,
    named,
    reported,
    said,
    unnoticed,
)

BLUNT = 0.25
"""Distance from chance: a null result that could have missed more than this tells nothing."""
FEW_POINTS = 100
"""Models that train on so few points say nothing of a model in use."""
WORST: tuple[State, ...] = (FAILED, MISSING, HELD)


def decisive(controls: Iterable[Control], sources: Collection[Source]) -> list[Control]:
    """Return the controls of what rests on ``sources``, in their order.

    Those are all that are about all scores of a setting or subject among them; and of the rows of a name about single
    attacks the first whose attack is among them. Rows stand in the order of the kind, the judge's first.
    """
    found, taken = [], set[tuple[str, str, str]]()
    for control in controls:
        own = [each for each in sources if each.setting == control.setting and control.subject in ("", each.subject)]
        name = (control.setting, control.subject, control.name)
        if control.lines == "attack":
            if name in taken or all(each.attack != control.attack for each in own):
                continue
            taken.add(name)
        if own:
            found.append(control)
    return found


def clears(control: Control) -> bool:
    """Say whether null results stand beside a control."""
    return control.state == HELD or (control.protects == RATES and control.state == MISSING)


def convicts(control: Control) -> bool:
    """Say whether leaks stand beside a control."""
    return control.protects != FINDINGS or control.state != FAILED


def gathered(controls: Iterable[Control], words: Callable[[str], str] = str) -> list[Control]:
    """Return a row for each name: how the worst of its controls came out, and why, for each of those.

    ``words``: names of attacks as they are reported. The evidence is in ``why`` then.
    """
    by_name: dict[str, list[Control]] = {}
    for control in controls:
        by_name.setdefault(control.name, []).append(control)
    found = []
    for rows in by_name.values():
        state = next(state for state in WORST if any(each.state == state for each in rows))
        worst = [each for each in rows if each.state == state]
        why = [*dict.fromkeys(reported(each, words) for each in worst)]
        if (more := len(why) - MOST_NAMED) > 0:
            why = [*why[:MOST_NAMED], f"And {more} more."]
        about = {"subject": "", "attack": None, "lines": "all"} if len(worst) > 1 else {}
        between = " " if all(text.endswith(".") for text in why) else "; "
        found.append(worst[0].but(why=between.join(why), evidence=Estimate(), **about))
    return found


def verdict_of(
    findings: Sequence[Finding],
    controls: Sequence[Control],
    *,
    main: Collection[str],
    wording: Wording,
    tested: str,
    access: Sequence[str],
    certainty: str,
    too_small: str = "",
    about: str = "",
) -> Verdict:
    """Return the verdict of a run on its ``main`` settings from the ``findings`` and ``controls`` of all settings.

    The headline counts the other settings, which are those of a sweep.
    """
    told = [said(as_controlled(each, controls), wording) for each in findings]
    found = [each for each in told if each.setting in main]
    further = [each for each in told if each.setting not in main]
    level: Level = UNTOLD if too_small else worst(found)
    if level == NONE_SEEN and leaky_elsewhere(found, further):
        level = UNTOLD  # neither an all-clear nor a leak: the number of settings is not corrected for
    said_first = headline(found, further, wording, too_small)
    if SEEN not in said_first:
        certainty = " ".join(certainty.replace(FOUR_IN_FIVE, "").split())
    own = shown(controls, found, main, wording)
    return Verdict(
        level=level,
        headline=said_first,
        findings=(*found, *further),
        tested=tested,
        access=tuple(access),
        certainty=certainty,
        controls=tuple(own),
        advice=wording.advice[SMALL if too_small else advised(level, own, wording)],
        too_small=too_small,
        about=about,
    )


def shown(
    controls: Sequence[Control], findings: Sequence[Finding], main: Collection[str], wording: Wording
) -> list[Control]:
    """Return the controls of the ``main`` settings, a row a name, with a note on the settings in which they failed."""
    rested_on = [control for each in findings for control in decisive(controls, each.sources)]
    own = [each for each in controls if each.setting in main and (each.lines == "all" or each in rested_on)]
    settings = {each.setting for each in own}
    rows = []
    for control in gathered(own, wording.words):
        failed = dict.fromkeys(each.setting for each in controls if (each.name, each.state) == (control.name, FAILED))
        here = [name for name in failed if name in main]
        elsewhere = [name for name in failed if name not in main]
        note = f" Failed in {', '.join(here)} alone." if here and len(here) < len(settings) else ""
        if elsewhere:
            note += f" Failed in {how_many(len(elsewhere), 'other setting')}: {named(elsewhere)}."
        rows.append(control.but(why=control.why + note))
    return rows


def worst(found: Sequence[Finding]) -> Level:
    """Return the level of a run: a leak before what cannot be told, that before no leak."""
    levels = {each.level for each in found}
    order: tuple[Level, ...] = (LEAK, UNTOLD, NONE_SEEN)
    return next((level for level in order if level in levels), UNTOLD)


def advised(level: str, controls: Sequence[Control], wording: Wording) -> str:
    """Return which advice a verdict asks for: its level, or that a control failed, by name where that has its own."""
    failed = [each.name for each in controls if each.state == FAILED]
    if level != UNTOLD or not failed:
        return level
    return failed[0] if len(failed) == 1 and failed[0] in wording.advice else FAILED


def as_controlled(finding: Finding, controls: Iterable[Control]) -> Finding:
    """Return a finding as the controls of its scores and its own power leave it."""
    own = decisive(controls, finding.sources)
    if lost := [called(each) for each in own if not convicts(each)]:
        return finding.but(level=UNTOLD, why=f"a control failed: {', '.join(dict.fromkeys(lost))}", seen_from=None)
    if finding.level != NONE_SEEN:
        return finding
    if weak := [each for each in own if not clears(each)]:
        return finding.but(level=UNTOLD, why=weakness(weak), seen_from=None)
    if finding.seen_from is None or finding.chance is None or finding.seen_from - finding.chance > BLUNT:
        return finding.but(level=UNTOLD, why=unnoticed(finding))
    return finding


def weakness(weak: Sequence[Control]) -> str:
    """Return why no null result stands beside controls that failed or are missing."""
    if failed := [each for each in weak if each.state == FAILED]:
        return f"no null result counts beside a control that failed: {called(failed[0])}"
    first = min(weak, key=lambda each: each.protects == FINDINGS)
    what = "nothing is found by mistake" if first.protects == FINDINGS else "a leak would be seen"
    return f"no control shows that {what} ({called(first)}: not in this run)"


def few_points(train_size: Any, noun: str) -> str:
    """Return why models of so few training points mean nothing; "" for larger ones and where the size is not known."""
    if not isinstance(train_size, int) or train_size > FEW_POINTS:
        return ""
    return f"its models were trained on {train_size} {noun} each"


def seen_above_chance(
    auc: Estimate, members: float, others: float, units: int, level: float, tests: int, *, grouped: bool = False
) -> float | None:
    """Return the smallest AUC that would have been called above chance, of so many tests; None where none is known.

    ``auc``: the mean over ``units``, in each of which ``members`` are told from ``others``. It must be found by the
    permutation test and by its interval (``audits.statistics.chance``). ``grouped``: points were dealt in groups, so
    that permutations vary by more than the formula for single points says; then by the interval alone.
    """
    half, degrees = max(auc.errors) if auc.bounded else 0.0, units - 1 if units > 1 else math.inf
    by_interval = 0.5 + detectable_shift(half, degrees, level)
    if grouped:
        return by_interval if auc.bounded and units > 1 else None
    error = half / student_quantile(level, degrees)
    return max(by_interval, detectable_auc(members, others, units, error, level, tests))
