"""The verdict of an Apollo run in detail: broken promises, each unlearner, and what luck would explain."""

from __future__ import annotations

from dataclasses import dataclass

from audits.statistics.chance import BELOW, NULL
from audits.statistics.null import expected_misses
from audits.statistics.one_target import SAYS
from audits.statistics.summary import Difference, paired_difference, per_target_auc
from orchestrator.apollo.page.promises import broken, careful
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import AttackRow, DiscoveryRow
from orchestrator.apollo.result.words import heading, words
from orchestrator.judgement.wording import ACCESS
from orchestrator.report.chance import standing_of, unsure
from orchestrator.report.numbers import estimate, percent
from orchestrator.report.sentence import Sentence
from orchestrator.report.words import access_level

PAIRS = (
    ("apollo", "random_directions"),
    ("apollo", "single_query"),
    ("apollo", "apollo_no_fit"),
    ("apollo", "apollo_under"),
    ("apollo", "apollo_over"),
    ("apollo_offline", "random_directions"),
    ("apollo_offline", "single_query"),
    ("apollo_plus", "apollo"),
    ("apollo_ladder", "apollo"),
    ("boundary_distance", "apollo"),
)
"""Attack and reference: what a search adds to none, the calibrated rule to no fit and to the paper's rules, others to
Apollo's search."""


@dataclass(frozen=True)
class Gain:
    """How much more one attack sees than another on the same targets (AUC difference)."""

    unlearner: str
    attack: str
    reference: str
    difference: Difference


def area(row: AttackRow) -> str:
    """Return an AUC with its interval, for a sentence."""
    return f"{words(row.attack)} {estimate(row.auc)}"


def verdict(run: ApolloRun) -> list[Sentence]:
    """Return the statements about the main setting, in the order in which they should be read."""
    found = [_unlearner(run, name) for name in run.unlearners if run.control_of(name) is None]
    return [
        *broken(run),
        *found,
        *_exposed(run),
        *careful(run.rows()),
        _luck(run),
        *([_scope(run)] if run.result.given else []),
    ]


def _scope(run: ApolloRun) -> Sentence:
    own = (
        "The control identity is the target before unlearning, retrain a model trained by the plan on its members"
        if run.result.original
        else "The controls are models trained by the plan on the target’s members"
    )
    text = (
        f"{SAYS} {own}, and judged on the same points. "
        "Shadows are trained and unlearned by the plan, which may differ from how the target was made."
    )
    return Sentence("plain", "Scope", text)


def differs(run: ApolloRun, row: AttackRow) -> bool:
    """Say whether a row differs from chance, in either direction, after the correction."""
    return standing_of(row, run.result.level) != NULL


def _unlearner(run: ApolloRun, name: str) -> Sentence:
    rows = [row for row in run.rows() if row.unlearner == name]
    starred = sorted((row for row in rows if row.above_chance), key=lambda row: -float(row.auc))
    above = [row for row in starred if row.access != "oracle"]
    flags = run.utility(name)
    note = "".join(
        f" {flag.capitalize()}{'' if run.result.given else f' on {count} of {flags.targets} targets'}."
        for flag, count in flags.flags.items()
    )
    head = f"Given model, by shadows of {words(name)}" if run.result.given else heading(name)
    if oracle := "; ".join(area(row) for row in starred if row.access == "oracle"):
        note = f" By the oracle, which is no attack: {oracle}.{note}"
    if not above:
        doubt = any(unsure(row, run.result.level) for row in rows)
        said = "No leak can be told." if doubt else "No attack is above chance."
        return Sentence("plain", head, f"{said}{_nulls(run, rows)}{note}")
    found = "; ".join(_strongest(above, access) for access in sorted({row.access for row in above}, key=access_level))
    return Sentence("leak", head, f"Forgotten points can be recognised {found}.{_nulls(run, rows)}{note}")


def _strongest(above: list[AttackRow], access: str) -> str:
    """Return what is above chance at one access level: the strongest with its interval, the others by name."""
    rows = [row for row in above if row.access == access]
    others = ", ".join(words(row.attack) for row in rows[1:])
    return f"from {ACCESS.get(access, access)}: {area(rows[0])}" + (f", also {others}" if others else "")


def _nulls(run: ApolloRun, rows: list[AttackRow]) -> str:
    """Return a sentence that names the attacks without a result, and those significantly below chance."""
    null = [words(row.attack) for row in rows if not differs(run, row)]
    below = [words(row.attack) for row in rows if standing_of(row, run.result.level) == BELOW]
    doubtful = [words(row.attack) for row in rows if unsure(row, run.result.level)]
    text = f" Null: {', '.join(null)}." if null else ""
    text += (
        f" Above chance, but not by the interval over {run.result.units}: {', '.join(doubtful)}." if doubtful else ""
    )
    return text + (f" Below chance: {', '.join(below)}." if below else "")


def _exposed(run: ApolloRun) -> list[Sentence]:
    """Return how many deleted points are found one by one, and what share of the points found is false."""
    exposed = run.result.exposed
    if not exposed:
        return []
    rows = {
        row.unlearner: row
        for row in run.result.discoveries
        if (row.setting, row.attack) == (exposed.setting, exposed.attack)
    }
    parts = [f"{run.called(name)} {_discovered(row)}" for name, row in rows.items()]
    head = f"Single deleted points, {words(exposed.attack)} at a false discovery rate of {percent(exposed.fdr, 0)}"
    elsewhere = sorted(
        {
            row.setting
            for row in run.result.discoveries
            if _is_found(row) and row.setting != exposed.setting and not run.control_of(row.unlearner, row.setting)
        }
    )
    more = f" Points are found in other settings: {', '.join(elsewhere)} (table under Settings)." if elsewhere else ""
    if not any(row.discoveries for row in rows.values()):
        text = "No single point is found with that certainty. Whatever leaks shows only on average."
        return [Sentence("leak" if elsewhere else "plain", head, text + more)]
    leaks = any(_is_found(row) for name, row in rows.items() if not run.control_of(name, row.setting))
    return [Sentence("leak" if leaks else "plain", head, f"Still detectable: {', '.join(parts)}.{more}")]


def _is_found(row: DiscoveryRow) -> bool:
    """Say whether forgotten points are found by p-values that hold."""
    return row.discoveries > row.false and not row.void


def _discovered(row: DiscoveryRow) -> str:
    """Return how many forgotten points are found, and how many unseen ones beside them."""
    if row.void:
        return "void"
    return f"{row.discoveries - row.false}" + (f" (beside {row.false} unseen ones)" if row.false else "")


def _luck(run: ApolloRun) -> Sentence:
    rows = run.rows()
    shown = 3 * len(rows)
    luck, luck_auc = expected_misses(shown, run.result.level), expected_misses(len(rows), run.result.level)
    return Sentence(
        "plain",
        "Luck",
        f"Of the {shown} intervals ({percent(run.result.level, 0)} each) in the main table, about {luck:.0f} are "
        f"expected to miss the truth by chance (of the {len(rows)} AUC intervals, about {luck_auc:.1f}). “Above "
        f"chance” therefore rests on permutation tests with Holm’s correction over the {len(rows)} rows, not on single "
        "intervals alone. A null result means that these attacks found nothing with this many points. It does not "
        "prove safety.",
    )


def search_gains(run: ApolloRun) -> list[Gain]:
    """Return what one attack sees more than another (``PAIRS``), paired over targets (two targets or more)."""
    gains = []
    for unlearner in run.unlearners:
        for attack, reference in PAIRS:
            pair = run.cells.get((unlearner, attack)), run.cells.get((unlearner, reference))
            if pair[0] is None or pair[1] is None:
                continue
            a, b = per_target_auc(pair[0]), per_target_auc(pair[1])
            if len(a) < 2:
                continue
            gains.append(Gain(unlearner, attack, reference, paired_difference(a, b, run.result.level)))
    return gains
