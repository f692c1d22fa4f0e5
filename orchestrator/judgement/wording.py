"""A verdict in words: its headline, findings, controls, the last lines on a terminal, and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import (
    FAILED,
    HELD,
    LEAK,
    MISSING,
    NONE_SEEN,
    NULLS,
    UNTOLD,
    Control,
    Finding,
    State,
    Verdict,
)

DASH = "–"
"""In the place of a number that is not defined."""
SMALL = "too small"
MOST_NAMED = 4
NUMBER = re.compile(r"\b(?:AUC|precision|likeness) [−.\d]+(?: \[[^\]]*\])?|\d %")
LAST_NUMBER = re.compile(r"\.\d+$")
METRICS = {"auc": "AUC", "precision": "precision", "ssim": "likeness", "tpr": "TPR", "fpr": "FPR"}
MEANINGS = {
    "AUC": "AUC: how often a training or deleted point ranks above a never-seen one; .50 is guessing, 1 is certainty.",
    "precision": "Precision: how many of the points that an attack calls members are members.",
    "likeness": "Likeness: SSIM of a reconstruction and its original; 1 is the same picture.",
}
"""Numbers of a headline for those who do not know them."""
ACCESS = {
    "labels": "predicted classes alone",
    "posteriors": "confidences",
    "logits": "raw outputs",
    "gradients": "gradients",
    "white_box": "weights",
    "weights": "weights",
    "oracle": "an oracle",
}
"""What an attacker sees with so much access, in words."""
TERMS = {"labels": "labels", "posteriors": "posteriors", "logits": "logits", "white_box": "white box"}
"""The field's words for the same, which tables, gates and plans use."""
FROM = ", from "
"""Between a subject and what an attacker sees of it."""
SEEN = "would have been seen"
FOUR_IN_FIVE = "“Would have been seen” means in four of five such runs."
STATES: Mapping[State, str] = {HELD: "held", FAILED: "failed", MISSING: "not in this run"}


@dataclass(frozen=True)
class Wording:
    """The words of a kind: what a ``leak`` means ("deleted images can be recognised"), and what to do.

    ``advice``: by level, by the state of controls, or by the name of the only control that failed. ``words``: returns
    the name of an attack as it is reported.
    """

    leak: str
    advice: dict[str, str]
    words: Callable[[str], str] = str


def advice(kind: str, leak: str, untold: str, none_seen: str = "") -> dict[str, str]:
    """Return what to do after each outcome of an audit of a ``kind``."""
    return {
        LEAK: leak,
        UNTOLD: untold,
        NONE_SEEN: none_seen
        or "This audit gives no reason to hold the model back. Keep this page as evidence, and audit again when data, "
        "training or method change. It is no proof: a stronger attack may still find a leak.",
        FAILED: "Do not rely on this run. Find out why the control failed (details below), fix the plan and run it "
        "again.",
        SMALL: f"Use this run only to check that everything works. Then run the default (orch audit {kind}, minutes on "
        "a laptop) or your own plan; orch cost estimates the effort first.",
    }


def with_term(access: str) -> str:
    """Return what an attacker sees with so much access, with the field's word for it where that is another one."""
    term = f" ({TERMS[access]})" if access in TERMS else ""
    return ACCESS.get(access, access) + term


def meanings(headline: str) -> str:
    """Return what the numbers of a headline are, in a sentence each."""
    return " ".join(text for name, text in MEANINGS.items() if re.search(rf"\b{name}\b", headline))


def capital(text: str) -> str:
    """Return a text with its first letter large, unless it begins with a name of code such as ``label_gap``."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]


def unbroken(text: str) -> str:
    """Return a text in whose lines no number stands apart from its name, its interval or its %."""
    return NUMBER.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def unnoticed(finding: Finding) -> str:
    """Return what a run without power could have missed."""
    below = finding.seen_from is not None and finding.seen_from < 1.0
    size = f"with {some(finding.metric)} below {rounded(finding.seen_from)}" if below else "of any size"
    return f"the run is too small and could have missed a leak {size}"


def some(metric: str) -> str:
    """Return a metric with its article."""
    return f"{'an' if metric == 'auc' else 'a'} {METRICS[metric]}"


def said(finding: Finding, wording: Wording) -> Finding:
    """Return a finding with its text."""
    if finding.text:
        return finding
    if finding.level == UNTOLD:
        return finding.but(text=f"cannot be told, because {finding.why}")
    where = f", from {ACCESS.get(finding.access, finding.access)}" if finding.access else ""
    if finding.level == LEAK:
        return finding.but(text=f"{wording.leak} ({measured(finding)}{where})")
    return finding.but(text=f"no leak seen; {power(finding)}")


def measured(finding: Finding) -> str:
    """Return the number behind a finding with its interval: ``AUC .61 [.59, .63]``."""
    return number_of(finding.value, finding.metric)


def number_of(value: Estimate, metric: str = "auc") -> str:
    """Return a number of a metric with its interval."""
    ends = f" [{rounded(value.low)}, {rounded(value.high)}]" if value.bounded else ""
    return f"{METRICS[metric]} {rounded(value.value)}{ends}"


def disagreement(units: str, attack: str, auc: Estimate) -> str:
    """Return why nothing can be told where points are told apart, but the interval of the AUC holds one half.

    ``units``: what the interval is over, "points" or models.
    """
    seen = f"({attack}, {number_of(auc)})"
    if units == "points":
        return f"it was asked about too few points to judge it {seen}"
    return f"its {units} disagree too much to judge it {seen}"


def power(finding: Finding) -> str:
    """Return what a null result would have seen."""
    return f"{some(finding.metric)} of {rounded(finding.seen_from, up=True)} or more {SEEN}"


def rounded(value: float | None, *, up: bool = False) -> str:
    """Return a number with two digits, ``.61``; ``up``: never below the number itself."""
    if value is None or value != value:
        return DASH
    two = math.ceil(value * 100 - 1e-9) / 100 if up else value
    text = f"{abs(two):.2f}"
    mark = "−" if value < 0 and float(text) else ""
    return mark + text.removeprefix("0")


def headline(found: Sequence[Finding], further: Sequence[Finding], wording: Wording, too_small: str) -> str:
    """Return the verdict in a sentence or three: leaks, nulls with their power, what cannot be told, other settings."""
    if too_small:
        return f"Trial run, too small to mean anything: {too_small}."
    elsewhere = leaky_elsewhere(found, further)
    plain = [each for each in found if each.level != NONE_SEEN or each.subject not in elsewhere]
    parts = [capital(part) for part in (*leaks(found, wording), *nulls(plain), *untold(found))]
    parts += [mixed(subject, rows) for subject, rows in elsewhere.items()]
    if further:
        names = dict.fromkeys(each.setting for each in (*found, *further))
        leaky = dict.fromkeys(each.setting for each in (*found, *further) if each.level == LEAK)
        parts.append(f"A leak is seen in {len(leaky)} of {len(names)} settings.")
    return " ".join(parts)


def leaky_elsewhere(found: Sequence[Finding], further: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Return subject → its leaks in other settings, of subjects that show none in the main one."""
    nulls = [each.subject for each in found if each.level == NONE_SEEN]
    rows = {subject: [each for each in further if (each.subject, each.level) == (subject, LEAK)] for subject in nulls}
    return {subject: leaks for subject, leaks in rows.items() if leaks}


def mixed(subject: str, rows: Sequence[Finding]) -> str:
    """Return the sentence on a subject that leaks in other settings only; their number is not corrected for."""
    first = f"{rows[0].setting} ({measured(rows[0])})"
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    luck = "the number of settings is not corrected for"
    return f"{subject}: no leak seen in this setting, but one in {first}{more}; {luck}."


def inside(subject: str) -> str:
    """Return a subject as it stands within a sentence."""
    first, _, rest = subject.partition(" ")
    return f"{first.lower()} {rest}" if first in ("The", "From", "Given") else subject


def leaks(found: Sequence[Finding], wording: Wording) -> list[str]:
    """Return the sentence on what leaks, which begins with what that means."""
    rows = [each for each in found if each.level == LEAK]
    same = [each for each in rows if each.text.startswith(wording.leak)]
    listed = measured_together(same)
    if len(rows) == len(same) == 1:
        listed = [f"{inside(same[0].subject)}{same[0].text.removeprefix(wording.leak)}"]
    own = [f"{each.subject}: {each.text}." for each in rows if each not in same]
    return [*([f"{wording.leak}: {named(listed)}."] if listed else []), *own]


def measured_together(rows: Sequence[Finding]) -> list[str]:
    """Return subjects with their numbers; those that differ in what an attacker sees alone are one."""
    found = []
    for whose, some in by_owner(rows).items():
        if len(some) == 1:
            found.append(f"{inside(some[0].subject)} ({measured(some[0])})")
        else:
            each = [f"from {row.subject.rpartition(FROM)[2]}: {measured(row)}" for row in some]
            found.append(f"{inside(whose)} ({'; '.join(each)})")
    return found


def by_owner(rows: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Return findings by their subject without what an attacker sees of it."""
    found: dict[str, list[Finding]] = {}
    for each in rows:
        found.setdefault(each.subject.rpartition(FROM)[0] or each.subject, []).append(each)
    return found


def owners(rows: Sequence[Finding], found: Sequence[Finding]) -> list[str]:
    """Return the subjects of ``rows``, shortened where all that was ``found`` of an owner is among them."""
    everything, names = by_owner(found), []
    for whose, some in by_owner(rows).items():
        whole = len(some) > 1 and len(some) == len(everything[whose])
        names += [whose] if whole else [each.subject for each in some]
    return list(dict.fromkeys(names))


def nulls(found: Sequence[Finding]) -> list[str]:
    """Return the sentence on what showed no leak, with the power of the weakest of them."""
    rows = [each for each in found if each.level == NONE_SEEN]
    if not rows:
        return []
    least = max(rows, key=lambda each: each.seen_from or 0.0)
    return [f"No leak seen: {named(owners(rows, found))}; {power(least)}."]


def untold(found: Sequence[Finding]) -> list[str]:
    """Return a sentence for each reason for which something cannot be told; of numbers in one reason the largest."""
    reasons: dict[str, list[Finding]] = {}
    for each in found:
        if each.level == UNTOLD:
            reasons.setdefault(LAST_NUMBER.sub("", each.why), []).append(each)
    return [
        f"Cannot be told: {named(owners(rows, found))}, because {max(each.why for each in rows)}."
        for rows in reasons.values()
    ]


def named(subjects: Sequence[str]) -> str:
    """Return a list of subjects, the first few by name; settings of several fields have commas of their own."""
    more = len(subjects) - MOST_NAMED
    mark = "; " if any(", " in subject for subject in subjects) else ", "
    return mark.join(subjects[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def called(control: Control) -> str:
    """Return the name of a control for readers who may not know the term."""
    return f"{control.description} ({control.name})" if control.description else control.name


def reported(control: Control, words: Callable[[str], str] = str) -> str:
    """Return how a control came out, in a sentence with its evidence; ``words``: names of attacks as reported."""
    return together([control], words)


def together(controls: Sequence[Control], words: Callable[[str], str] = str) -> str:
    """Return how controls came out that did so for the same reason, in a sentence with the evidence of each."""
    numbers = [
        number_of(each.evidence, each.metric) + (f", {words(each.attack)}" if each.attack else "")
        for each in controls
        if each.evidence.known
    ]
    why = controls[0].why
    return f"{why.removesuffix('.')} ({named([*dict.fromkeys(numbers)])})." if numbers else why


def short(control: Control) -> str:
    """Return a control and how it came out, for a gate: "canaries: They are not recognised (AUC .51, lira)"."""
    absent = f"{STATES[MISSING]}. " if control.state == MISSING else ""
    return f"{control.name}: {absent}{reported(control).removesuffix('.')}"


def outcome(control: Control) -> str:
    """Return a control and its state, for a page: "Models retrained from scratch (retrain): held"."""
    return f"{capital(called(control))}: {STATES[control.state]}"


def warnings(controls: Collection[Control]) -> list[str]:
    """Return a warning for each control that failed, but for those of null results, which a verdict alone draws."""
    several = len({each.setting for each in controls}) > 1
    return [
        f"control failed{f' (setting {each.setting})' if several else ''}: {short(each)}"
        for each in controls
        if each.state == FAILED and each.protects != NULLS
    ]


def lines(verdict: Verdict) -> list[str]:
    """Return the verdict for the end of a terminal: the headline, controls that did not hold, what to do."""
    bad = [each for each in verdict.controls if each.state != HELD]
    told = [f"Control {STATES[each.state]}: {called(each)}. {each.why}" for each in bad]
    of = f" on {verdict.about}" if verdict.about else ""
    return [f"Verdict{of}: {verdict.headline}", *told, f"What to do: {verdict.advice}"]
