"""Promised false-positive rates in words: kept, on the careful side, or broken, and what is void then."""

from __future__ import annotations

from collections.abc import Sequence

from audits.statistics import controls
from orchestrator.apollo.page.glossary import words
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.judgement.wording import capital
from orchestrator.report.numbers import number, percent
from orchestrator.report.sentence import Sentence

BROKEN = "Promised rates did not hold"
UNLIKE = "judged by their intervals, since shadows are trained unlike the targets"
UNVOUCHED = "judged by their intervals, since shadows may be made unlike the given model"
MOST_NAMED = 6


def void_words(run: ApolloRun) -> str:
    """Return which attacks broke their promise in any setting, how far, and what is void; "" where all kept it."""
    rows = [row for row in run.result.table if row.void]
    if not rows:
        return ""
    named = ", ".join(void_attack(run, name) for name in dict.fromkeys(row.attack for row in rows))
    points = run.result.exposed.points if run.result.exposed else ()
    listed = " and exposure list" if any(point.void for point in points) else ""
    return f"for {named}: their TPR, p- and q-values{listed} are void and must not be quoted"


def void_attack(run: ApolloRun, attack: str) -> str:
    """Return an attack, the methods and settings in which it is void, and the largest rate found there."""
    own = [row for row in run.result.table if row.attack == attack]
    void = [row for row in own if row.void]
    off = [row for row in void if row.found_fpr_off]
    worst = max(off, key=lambda row: float(row.found_fpr))
    against = some(void, own, "unlearner", " against ")
    within = some(void, own, "setting", " in ")
    found = "up to " * (len(off) > 1) + number(worst.found_fpr.value)
    return f"{words(attack)}{against}{within} (found {found} at a promised {number(worst.promised_fpr)})"


def some(void: Sequence[AttackRow], own: Sequence[AttackRow], name: str, before: str) -> str:
    """Return the methods or settings of void rows in words, nothing where they are all that the attack has."""
    part, whole = ({getattr(row, name): None for row in rows} for rows in (void, own))
    if part.keys() == whole.keys():
        return ""
    many = f"{len(part)} of {len(whole)} {name}s"
    named = map(words, part) if name == "unlearner" else part
    return before + (" and ".join(named) if len(part) <= 3 else many)


def void_lines(run: ApolloRun) -> list[str]:
    """Return the line that a terminal shows before all others; none where every promise was kept."""
    text = void_words(run)
    return [f"{BROKEN} {text}"] if text else []


def promise_sentences(run: ApolloRun) -> tuple[list[Sentence], list[Sentence]]:
    """Return what a verdict says of the promised rate: before all else where one is broken, and after the methods."""
    rows = run.rows()
    missed = [row for row in rows if row.found_fpr_off]
    tests = sum(row.found_fpr_p is not None for row in run.result.table)
    head = f"Promised false-positive rate of {run.fpr * 100:g}\N{NO-BREAK SPACE}%"
    rule = f"after Holm’s correction over the {tests} found rates of the run"
    text = void_words(run)
    first = [Sentence("bad", BROKEN, f"{capital(text)}. {STANDS}")] if text else []
    if not missed:
        kept = f"Kept: the found rate is above it in none of {len(rows)} rows {rule}.{careful(rows)}"
        return first, [Sentence("good", head, kept)]
    names = ", ".join(
        f"{words(row.unlearner)} × {words(row.attack)} (found {percent(row.found_fpr.value)})"
        for row in missed[:MOST_NAMED]
    )
    more = f" and {len(missed) - MOST_NAMED} more" if len(missed) > MOST_NAMED else ""
    unlike = UNVOUCHED if run.given else UNLIKE
    how = f"also {rule}" if all(controls.off(row.found_fpr_p_holm, run.level) for row in missed) else unlike
    broken = f"Not kept in {len(missed)} of {len(rows)} rows, {how}: {names}{more}.{careful(rows)}"
    return first, [Sentence("bad", head, broken)]


def careful(rows: Sequence[AttackRow]) -> str:
    """Return a sentence about the rows whose found rate is below the promise, which voids nothing; "" without any."""
    below = [row for row in rows if row.found_fpr_below]
    if not below:
        return ""
    named = ", ".join(f"{words(row.unlearner)} × {words(row.attack)}" for row in below[:MOST_NAMED])
    more = f" and {len(below) - MOST_NAMED} more" if len(below) > MOST_NAMED else ""
    return f" It is below the promise in {len(below)}, which is safe but understates the TPR: {named}{more}."


STANDS = (
    "Targets do not behave as the shadows suggest. AUC, its p-values and the TPR on the ROC remain valid: they rest on "
    "no promise."
)
VOID_KEY = "void: promised rate broken, must not be quoted"


def void_title(title: str, void: bool) -> str:
    """Return the title of a table, with the meaning of the mark where the table has it."""
    return f"{title} ({VOID_KEY})" if void else title
