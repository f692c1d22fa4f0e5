"""Promised false-positive rates in words: on the careful side, or broken, and what is void then."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.apollo.result.words import words
from orchestrator.judgement.wording import capital, named
from orchestrator.report.numbers import number
from orchestrator.report.sentence import Sentence

BROKEN = "Promised rates did not hold"


def void_words(run: ApolloRun) -> str:
    """Return which attacks broke their promise in any setting, how far, and what is void; "" where all kept it."""
    rows = [row for row in run.result.table if row.void]
    if not rows:
        return ""
    attacks = ", ".join(void_attack(run, name) for name in dict.fromkeys(row.attack for row in rows))
    points = run.result.exposed.points if run.result.exposed else ()
    listed = " and exposure list" if any(point.void for point in points) else ""
    return f"for {attacks}: their TPR, p- and q-values{listed} are void and must not be quoted"


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
    called = map(words, part) if name == "unlearner" else part
    return before + (" and ".join(called) if len(part) <= 3 else many)


def void_lines(run: ApolloRun) -> list[str]:
    """Return the line that a terminal shows before all others; none where every promise was kept."""
    text = void_words(run)
    return [f"{BROKEN} {text}"] if text else []


def broken(run: ApolloRun) -> list[Sentence]:
    """Return what stands before all else where a promised rate is broken; nothing where all were kept."""
    text = void_words(run)
    return [Sentence("bad", BROKEN, f"{capital(text)}. {STANDS}")] if text else []


def careful(rows: Sequence[AttackRow]) -> list[Sentence]:
    """Return a sentence about rows whose found rate is below the promise, which voids nothing; nothing without any."""
    below = [f"{words(row.unlearner)} × {words(row.attack)}" for row in rows if row.found_fpr_below]
    if not below:
        return []
    text = f"In {len(below)} of {len(rows)} rows, which is safe but understates the TPR: {named(below)}."
    return [Sentence("plain", "Found rates below the promise", text)]


STANDS = (
    "Targets do not behave as the shadows suggest. AUC, its p-values and the TPR on the ROC remain valid: they rest on "
    "no promise."
)
VOID_KEY = "void: promised rate broken, must not be quoted"


def void_title(title: str, void: bool) -> str:
    """Return the title of a table, with the meaning of the mark where the table has it."""
    return f"{title} ({VOID_KEY})" if void else title
