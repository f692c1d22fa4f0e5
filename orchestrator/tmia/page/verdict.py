"""The verdict of a TMIA run in detail: each setting, then the control, selection, other attacks, fit, luck.

The attacks of the verdict are fixed by name (``reading.JUDGES``) and the selection by the plan's order, never by what
they found. A precision counts as above chance where its interval lies above the share of member pairs.
"""

from __future__ import annotations

import math

from audits.statistics.null import expected_misses
from audits.statistics.power import detectable_shift
from orchestrator.report.numbers import number, percent
from orchestrator.report.sentence import Sentence
from orchestrator.tmia.page.given import beside, named, own_rate, scope
from orchestrator.tmia.page.glossary import words
from orchestrator.tmia.page.numbers import null_rate, rate
from orchestrator.tmia.page.reading import ALL, NONE, TmiaRun
from orchestrator.tmia.result.controls import fair
from orchestrator.tmia.result.given_rows import GivenCell
from orchestrator.tmia.result.rows import GAP, TmiaCell


def finds(row: TmiaCell) -> bool:
    """Say whether a cell's precision lies above chance with its whole interval, and is not void."""
    return not row.void and row.chance is not None and row.precision.above(row.chance)


def misleads(row: TmiaCell) -> bool:
    """Say whether a cell's precision lies below chance with its whole interval, and is not void."""
    return not row.void and row.chance is not None and row.precision.below(row.chance)


def detectable(row: TmiaCell, level: float) -> float | None:
    """Return the lowest precision that an interval as wide as this cell's would have told from chance; or None.

    Four times in five, and by the wider side of the interval: near 0 and 1 the other one is cut short.
    """
    if row.chance is None or not row.precision.known or not row.precision.bounded:
        return None
    return row.chance + detectable_shift(max(row.precision.errors), math.inf, level)


def verdict(run: TmiaRun) -> list[Sentence]:
    """Return the statements about a run, in the order in which they should be read."""
    sentences = [setting_sentence(run, setting) for setting in run.shown]
    sentences += [control(run, setting) for setting in run.shown]
    sentences += [part for setting in run.shown for part in own_rate(run, setting)]
    sentences += [part for setting in run.shown for part in beside(run, setting)]
    sentences += [part for setting in run.shown for part in selection_sentences(run, setting)]
    sentences += [part for setting in run.shown for part in other_attacks(run, setting)]
    if len(run.shown) < len(run.settings):
        sentences.append(sweep_sentence(run))
    return [*scope(run), *sentences, fit_sentence(run), luck(run)]


def control(run: TmiaRun, setting: str) -> Sentence:
    """Say whether models that never saw a candidate are called members as rarely as the level promises."""
    head = f"Control: null models{named(run, setting)}"
    rows = [row for row in run.rows(setting) if row.promised is not None]
    held = fair(rows)
    if not held:
        return Sentence("bad", head, "Not in this run: nothing shows that the false-positive rate β is kept.")
    above = [row for row in held if row.null_fpr_off]
    spoken = [row for row in held if row.attack in run.judges and row.selection == run.main_selection]
    seen = "; ".join(f"{words(row.attack)} {null_rate(row)}" for row in spoken)
    counts = f"{held[0].null_models} models that saw no candidate"
    level = f"{held[0].beta * 100:g}\N{NO-BREAK SPACE}%"
    read = f" Rate found on them under {words(run.main_selection)}: {seen}." if seen else ""
    tests = len(fair(run.result.table))
    rule = f"after Holm’s correction over {tests} attack × selection cells" + (" of all settings" * (tests > len(held)))
    if not above:
        text = (
            f"The level β = {level} holds as far as this run can see: in none of {len(held)} cells is the rate on "
            f"{counts} above it {rule} (smallest p = {min(row.null_fpr_p_holm or 0.0 for row in held):.2f}).{read} An "
            "excess inside these intervals cannot be excluded."
        )
        return Sentence("good", head, text)
    names = ", ".join(f"{words(row.attack)} × {words(row.selection)}" for row in above[:6])
    names += ", …" if len(above) > 6 else ""
    text = (
        f"{counts.capitalize()} are called members more often than β = {level} in {len(above)} of {len(held)} cells, "
        f"also {rule}: {names}.{read} There the p-values are too small: precision and coverage are void "
        "and must not be quoted."
    )
    return Sentence("bad", head, text)


def setting_sentence(run: TmiaRun, setting: str) -> Sentence:
    """Say what the attacks of the verdict find in one setting under the main selection: labels, then posteriors."""
    mode = run.mode(setting)
    head = f"Attack {mode}{named(run, setting)}"
    found = [run.cell(setting, run.main_selection, attack) for attack in run.judges]
    rows = [row for row in found if row]
    if not rows:
        return Sentence("plain", head, f"No attack of this run has a result under {words(run.main_selection)}.")
    leaks = [means(row) for row in rows if finds(row)]
    answer = "No member is recognised beyond chance: a null result."
    if leaks:
        answer = f"Members can be recognised {' and '.join(leaks)}."
    where = f"Asked about the {rows[0].candidates} candidates chosen by {words(run.main_selection)}."
    if run.main_selection in (ALL, NONE):
        where = f"Asked about {rows[0].candidates} candidates."
    told = [said(row, run.level) for row in rows]
    return Sentence("leak" if leaks else "plain", head, " ".join([answer, where, *told]))


def means(row: TmiaCell) -> str:
    """Return what an attack goes by, for a sentence."""
    return "from labels alone" if row.access == "labels" else f"from {row.access}"


def said(row: TmiaCell, level: float) -> str:
    """Return what one cell says: precision, coverage, false positives; for a null what it could have seen."""
    who = f"{means(row).capitalize()} ({words(row.attack)})"
    called = row.true_positives + row.false_positives
    lost = f" Pairs without a statistic, which count as not called: {row.failed}." if row.failed else ""
    if row.void:
        where = "null models" if row.null_fpr_off else "the target’s own non-members"
        given = isinstance(row, GivenCell) and row.auc.bounded
        scores = f" Its scores rest on no level: AUC {rate(row.auc)}." if given else ""
        return f"{who}: void, the level β does not hold on {where}.{scores}"
    if not row.pairs:
        return f"{who}: no pair was attacked, precision and coverage are undefined."
    if not called:
        return f"{who}: none of {row.pairs} pairs is called a member, so that precision is undefined (0/0).{lost}"
    expected = row.expected_false_positives
    luck = "" if expected is None else f", where β allows {expected:.1f}"
    text = (
        f"{who}: of {called} answers “member” {row.true_positives} are right, precision {rate(row.precision)}; "
        f"coverage {rate(row.coverage)} of the member pairs; false positives: {row.false_positives}{luck}."
    )
    return f"{text}{power(row, level)}{lost}"


def power(row: TmiaCell, level: float) -> str:
    """Return, for a cell that is not above chance, what this run could have told from chance; else nothing."""
    seen = detectable(row, level)
    if finds(row) or seen is None:
        return ""
    if misleads(row):
        return " That lies below chance: calls are wrong more often than guesses. Explain this before using the attack."
    beyond = f"below {number(seen)}" if seen < 1.0 else "of any size"
    excluded = f"above {number(row.precision.high)} is excluded" if row.precision.below(1.0) else "none is excluded"
    text = (
        f" Not told from chance ({number(row.chance)}): with {row.pairs} pairs and so wide an interval, a precision "
        f"{beyond} could have gone unnoticed; {excluded}."
    )
    if row.auc.above(0.5):
        over = row.resampled if isinstance(row, GivenCell) else "targets alone"
        text += f" Its scores lean the right way all the same: AUC {rate(row.auc)}, over {over}."
    return text


def selection_sentences(run: TmiaRun, setting: str) -> list[Sentence]:
    """Say what selecting candidates adds to attacking everybody, both intervals beside each other."""
    parts = []
    for attack in run.judges:
        base = run.cell(setting, NONE, attack) or run.cell(setting, ALL, attack)
        chosen = [row for name in run.selectors if (row := run.cell(setting, name, attack))]
        if base is None or not chosen:
            continue
        listed = "; ".join(f"{words(row.selection)} (|Q| = {row.candidates}) {both(row)}" for row in chosen)
        clear = [words(row.selection) for row in chosen if above(row, base)]
        worse = [words(row.selection) for row in chosen if above(base, row)]
        gain = "intervals overlap: no gain shown"
        if clear:
            gain = f"more precise beyond both intervals: {', '.join(clear)}"
        loss = f"; less precise: {', '.join(worse)}" if worse else ""
        parts.append(f"{words(attack)}: {words(base.selection)} {both(base)}; {listed} ({gain}{loss}).")
    head = f"Gain by selection{named(run, setting)}"
    return [Sentence("plain", head, "Precision / coverage. " + " ".join(parts))] if parts else []


def both(row: TmiaCell) -> str:
    """Return precision with its interval and coverage, for a sentence."""
    return "void" if row.void else f"{rate(row.precision)} / {rate(row.coverage)}"


def above(row: TmiaCell, other: TmiaCell) -> bool:
    """Say whether one cell's precision interval lies wholly above another's, neither of them void."""
    return (
        not (row.void or other.void) and other.precision.high is not None and row.precision.above(other.precision.high)
    )


def other_attacks(run: TmiaRun, setting: str) -> list[Sentence]:
    """Say which of the other attacks are above chance on the same candidates, and name the null ones."""
    rows = [row for row in run.rows(setting) if row.selection == run.main_selection]
    rows = [row for row in rows if row.attack not in run.judges]
    if not rows:
        return []
    seen = "; ".join(f"{words(row.attack)} ({row.access}) {both(row)}" for row in rows if finds(row))
    void = [words(row.attack) for row in rows if row.void]
    null = [row for row in rows if not finds(row) and row.precision.known and not row.void]
    silent = [words(row.attack) for row in rows if not row.precision.known and not row.void]
    parts = [f"Above chance, precision / coverage: {seen}." if seen else "None is above chance."]
    if null:
        parts.append(f"Not above: {', '.join(words(row.attack) + ' ' + rate(row.precision) for row in null)}.")
    if void:
        parts.append(f"Void, since the level does not hold: {', '.join(void)}.")
    if silent:
        parts.append(f"Precision undefined (0/0): {', '.join(silent)}.")
    return [Sentence("plain", f"Other attacks on the same candidates{named(run, setting)}", " ".join(parts))]


def sweep_sentence(run: TmiaRun) -> Sentence:
    """Say in which settings of a sweep the attacks of the verdict are above chance."""
    parts = []
    for attack in run.judges:
        rows = [row for name in run.settings if (row := run.cell(name, run.main_selection, attack))]
        names = [row.setting for row in rows if finds(row)]
        listed = f" ({', '.join(names)})" if names and len(names) < len(rows) else ""
        parts.append(f"{words(attack)} is above chance in {len(names)} of {len(rows)} settings{listed}.")
    return Sentence("plain", f"All settings, {words(run.main_selection)}", " ".join(parts))


def fit_sentence(run: TmiaRun) -> Sentence:
    """Say whether the models are normally fitted, which is what the method is about.

    Reference models are left to the table: they draw with replacement, and a point drawn twice is learnt twice.
    """
    measured = [row for row in run.result.fit if row.setting in run.settings and row.group != "reference"]
    gaps = [row.gap for row in measured if row.gap is not None]
    flagged = {(row.setting, row.side): 0.0 for row in measured if row.flag}
    limit = f"{GAP * 100:g} points"
    if not gaps:
        return Sentence("bad", "Fit", "Not in this run: nothing shows how far training and test accuracy lie apart.")
    if not flagged:
        text = f"Normal: training accuracy is at most {100 * max(gaps):.1f} points above test accuracy (limit {limit})."
        return Sentence("good", "Fit", text)
    for row in measured:
        if row.flag:
            flagged[row.setting, row.side] = max(flagged[row.setting, row.side], row.gap or 0.0)
    listed = [f"{setting} ({side} side) {100 * gap:.1f}" for (setting, side), gap in flagged.items()]
    text = (
        f"Not normal: training accuracy exceeds test accuracy by more than {limit}: {', '.join(listed)}. What is found "
        "there may be plain over-fitting, which simpler attacks see as well; it is no result about well-fitted models."
    )
    return Sentence("bad", "Fit", text)


def luck(run: TmiaRun) -> Sentence:
    """Say how many intervals would miss the truth by luck, and what a null result is worth."""
    cells = sum(row.precision.low is not None for row in run.result.table)
    missed = expected_misses(cells, run.level)
    text = (
        f"Of {cells} precision intervals ({percent(run.level, 0)}) about {missed:.1f} may miss the truth by luck; "
        "cells share models and points, so that misses come together. The attacks and the selection of the verdict "
        "are fixed by name; the best cell of the table, picked afterwards, flatters the attacker. A null result is no "
        "proof of safety."
    )
    return Sentence("plain", "Luck", text)
