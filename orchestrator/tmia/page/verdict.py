"""The verdict of a TMIA run in detail: each setting, then selection, other attacks, fit, luck.

The attacks of the verdict are fixed by name (``controls.JUDGES``) and the selection by the plan's order, never by what
they found. A precision counts as above chance where its interval lies above the share of member pairs.
"""

from __future__ import annotations

from audits.statistics.null import expected_misses
from orchestrator.judgement.wording import ACCESS
from orchestrator.report.numbers import number, percent
from orchestrator.report.sentence import Sentence
from orchestrator.tmia.page.given import named, scope
from orchestrator.tmia.page.numbers import rate
from orchestrator.tmia.result.given_rows import GivenCell
from orchestrator.tmia.result.judging import detectable
from orchestrator.tmia.result.rows import GAP, TmiaCell
from orchestrator.tmia.result.run import ALL, NONE, TmiaRun
from orchestrator.tmia.result.words import words


def misleads(row: TmiaCell) -> bool:
    """Say whether a cell's precision lies below chance with its whole interval, and is not void."""
    return not row.void and row.chance is not None and row.precision.below(row.chance)


def verdict(run: TmiaRun) -> list[Sentence]:
    """Return the statements about a run, in the order in which they should be read."""
    sentences = [part for setting in run.shown for part in setting_sentences(run, setting)]
    sentences += [part for setting in run.shown for part in selection_sentences(run, setting)]
    sentences += [part for setting in run.shown for part in other_attacks(run, setting)]
    if len(run.shown) < len(run.settings):
        sentences.append(sweep_sentence(run))
    return [*scope(run), *sentences, fit_sentence(run), luck(run)]


def setting_sentences(run: TmiaRun, setting: str) -> list[Sentence]:
    """Say what is found in one setting under the main selection, then each attack of the verdict: labels first."""
    mode = run.mode(setting)
    head = f"Attack {mode}{named(run, setting)}"
    found = [run.cell(setting, run.main_selection, attack) for attack in run.judges]
    rows = [row for row in found if row]
    if not rows:
        return [Sentence("plain", head, f"No attack of this run has a result under {words(run.main_selection)}.")]
    leaks = [means(row) for row in rows if row.above_chance]
    answer = "Members are not recognised better than by chance: a null result."
    if leaks:
        answer = f"Members can be recognised {' and '.join(leaks)}."
    where = f"{rows[0].candidates} candidates, selected by {words(run.main_selection)}."
    if run.main_selection in (ALL, NONE):
        where = f"{rows[0].candidates} candidates."
    first = Sentence("leak" if leaks else "plain", head, f"{answer} {where}")
    each = [
        Sentence(
            "leak" if row.above_chance else "plain", f"{head}, {means(row)} ({words(row.attack)})", said(row, run.level)
        )
        for row in rows
    ]
    return [first, *each]


def means(row: TmiaCell) -> str:
    """Return what an attack goes by, for a sentence."""
    return f"from {ACCESS.get(row.access, row.access)}"


def said(row: TmiaCell, level: float) -> str:
    """Return what one cell says: precision, coverage, false positives; for a null what it could have seen."""
    called = row.true_positives + row.false_positives
    lost = f" Pairs without a statistic count as not called: {row.failed}." if row.failed else ""
    if row.void:
        where = "null models" if row.null_fpr_off else "the target’s own non-members"
        given = isinstance(row, GivenCell) and row.auc.bounded
        scores = f" The AUC of its scores, which needs no level, is {rate(row.auc)}." if given else ""
        return f"Void: the level β does not hold on {where}.{scores}"
    if not row.pairs:
        return "No pair was attacked, so precision and coverage are undefined."
    if not called:
        return f"None of {row.pairs} pairs is called a member, so precision is undefined (0/0).{lost}"
    expected = row.expected_false_positives
    luck = "" if expected is None else f" (β allows {expected:.1f})"
    text = (
        f"{row.true_positives} of {called} “member” calls are right: precision {rate(row.precision)}, chance "
        f"{number(row.chance)}. Coverage {rate(row.coverage)}; false positives: {row.false_positives}{luck}."
    )
    return f"{text}{power(row, level)}{lost}"


def power(row: TmiaCell, level: float) -> str:
    """Return, for a cell that is not above chance, what this run could have told from chance; else nothing."""
    seen = detectable(row, level)
    if row.above_chance or seen is None:
        return ""
    if misleads(row):
        return " That is below chance: calls are wrong more often than guesses. Explain this before using the attack."
    beyond = f"below {number(seen)}" if seen < 1.0 else "of any size"
    excluded = f"above {number(row.precision.high)} is ruled out" if row.precision.below(1.0) else "none is ruled out"
    text = f" Not above chance. With {row.pairs} pairs, a precision {beyond} could have been missed; {excluded}."
    if row.auc.above(0.5):
        over = row.resampled if isinstance(row, GivenCell) else "targets alone"
        text += f" Its scores still point the right way: AUC {rate(row.auc)}, over {over}."
    return text


def selection_sentences(run: TmiaRun, setting: str) -> list[Sentence]:
    """Say what selecting candidates adds to attacking everybody, both intervals beside each other."""
    found = []
    for attack in run.judges:
        base = run.cell(setting, NONE, attack) or run.cell(setting, ALL, attack)
        chosen = [row for name in run.selectors if (row := run.cell(setting, name, attack))]
        if base is None or not chosen:
            continue
        listed = ", ".join(f"{words(row.selection)} (|Q| = {row.candidates}) {both(row)}" for row in chosen)
        clear = [words(row.selection) for row in chosen if above(row, base)]
        worse = [words(row.selection) for row in chosen if above(base, row)]
        gain = "No gain is shown, since intervals overlap."
        if clear:
            gain = f"More precise, with disjoint intervals: {', '.join(clear)}."
        loss = f" Less precise: {', '.join(worse)}." if worse else ""
        text = f"{gain}{loss} Precision / coverage: {words(base.selection)} {both(base)}, {listed}."
        found.append(Sentence("plain", f"Gain by selection{named(run, setting)}, {words(attack)}", text))
    return found


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
    seen = "; ".join(f"{words(row.attack)} ({row.access}) {both(row)}" for row in rows if row.above_chance)
    void = [words(row.attack) for row in rows if row.void]
    null = [row for row in rows if not row.above_chance and row.precision.known and not row.void]
    silent = [words(row.attack) for row in rows if not row.precision.known and not row.void]
    parts = [f"Above chance, precision / coverage: {seen}." if seen else "None is above chance."]
    if null:
        parts.append(f"Not above: {', '.join(words(row.attack) + ' ' + rate(row.precision) for row in null)}.")
    if void:
        parts.append(f"Void, because the level does not hold: {', '.join(void)}.")
    if silent:
        parts.append(f"Precision undefined (0/0): {', '.join(silent)}.")
    return [Sentence("plain", f"Other attacks on the same candidates{named(run, setting)}", " ".join(parts))]


def sweep_sentence(run: TmiaRun) -> Sentence:
    """Say in which settings of a sweep the attacks of the verdict are above chance."""
    parts = []
    for attack in run.judges:
        rows = [row for name in run.settings if (row := run.cell(name, run.main_selection, attack))]
        names = [row.setting for row in rows if row.above_chance]
        listed = f" ({', '.join(names)})" if names and len(names) < len(rows) else ""
        parts.append(f"{words(attack)} is above chance in {len(names)} of {len(rows)} settings{listed}.")
    return Sentence("plain", f"All settings, {words(run.main_selection)}", " ".join(parts))


def fit_sentence(run: TmiaRun) -> Sentence:
    """Say whether the models are normally fitted, which is what the method is about.

    Reference models are left to the table: they draw with replacement, and a point drawn twice is learnt twice. So are
    over-fitted models, which are meant to be.
    """
    measured = [row for row in run.result.fit if row.setting in run.settings]
    measured = [row for row in measured if row.group not in ("reference", "overfitted")]
    gaps = [row.gap for row in measured if row.gap is not None]
    flagged = {(row.setting, row.side): 0.0 for row in measured if row.flag}
    limit = f"{GAP * 100:g} points"
    if not gaps:
        return Sentence("bad", "Fit", "Not in this run, so the gap between training and test accuracy is unknown.")
    if not flagged:
        text = f"Normal: training accuracy is at most {100 * max(gaps):.1f} points above test accuracy (limit {limit})."
        return Sentence("good", "Fit", text)
    for row in measured:
        if row.flag:
            flagged[row.setting, row.side] = max(flagged[row.setting, row.side], row.gap or 0.0)
    listed = [f"{setting} ({side} side) {100 * gap:.1f}" for (setting, side), gap in flagged.items()]
    text = (
        f"Over-fitted: training accuracy exceeds test accuracy by more than {limit}: {', '.join(listed)}. Simpler "
        "attacks find over-fitting as well, so this says nothing about well-fitted models."
    )
    return Sentence("bad", "Fit", text)


def luck(run: TmiaRun) -> Sentence:
    """Say how many intervals would miss the truth by luck, and what a null result is worth."""
    cells = sum(row.precision.low is not None for row in run.result.table)
    missed = expected_misses(cells, run.level)
    text = (
        f"Of {cells} precision intervals ({percent(run.level, 0)} each), about {missed:.1f} are expected to miss the "
        "truth by chance. Cells share models and points, so misses come together. The verdict’s attacks and selection "
        "were fixed beforehand; the best cell of the table, picked afterwards, overstates. A null result is no proof "
        "of safety."
    )
    return Sentence("plain", "Luck", text)
