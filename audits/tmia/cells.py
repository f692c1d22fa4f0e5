"""From rulings to the table of scores, and from the table alone to the cells of a report.

A cell judges one attack on one set of candidates: those that a selector chose and that were asked label-only, alike for
every attack, or "all" candidates for attacks that read more than labels. Intervals are those of
``audits.statistics.precision``; all cells of a setting share the draws of targets, candidates and reference models, so
that they differ by their attacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Ids
from audits.errors import BadInput
from audits.statistics import intervals, roc
from audits.statistics.precision import Decide, Outcome, Rate, measure, measure_null
from audits.tmia.attacks import ATTACKS, JUDGED, Attack, Ruling
from audits.tmia.design import GROUPS, TRAINED, Group
from audits.tmia.shared_pool import NO_CORRECTION

Columns = Mapping[str, NDArray[Any]]

NOTHING = Rate(None, None, None, None, None, 1.0)


def scores_rows(
    rulings: Mapping[str, Ruling],
    membership: Bools,
    point_ids: Ids,
    label: Ids,
    selected: Mapping[str, Bools],
    asked: Bools,
    overfitted: Bools | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the columns of the table of scores, one row for each attack, model and candidate.

    ``rulings`` by name of the attack; ``membership`` (T, K) bool of targets, ``overfitted`` (C, K) of over-fitted
    models; ``point_ids`` and ``label`` (K,) int64; ``selected``: candidates (K,) that each selector chose; ``asked``
    (K,): asked label-only. Columns: attack, access and group (objects: str), model, candidate and queries (int32),
    point_id and label (int64), statistic and p (float64, NaN where there is none), member, decision, asked and
    q_<selector> (bool). Reference models have rows, without p and decision, for attacks that rank among them.
    ``member`` is False of reference and null models.
    """
    members = {"target": membership, "overfitted": overfitted}
    parts = [
        _rows(name, ruling, group, members.get(group))
        for name, ruling in rulings.items()
        for group in TRAINED
        if group in ruling.statistic
    ]
    columns = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
    candidate = columns["candidate"]
    columns |= {"point_id": point_ids[candidate], "label": label[candidate], "asked": asked[candidate]}
    return columns | {f"q_{name}": chosen[candidate] for name, chosen in selected.items()}


def _rows(name: str, ruling: Ruling, group: Group, membership: Bools | None) -> dict[str, NDArray[Any]]:
    """Return the columns that one attack and group decide."""
    statistic = ruling.statistic[group]
    models, size = statistic.shape

    def repeated(text: str) -> NDArray[np.object_]:
        return np.full(statistic.size, text, dtype=object)

    nowhere, never = np.full(statistic.shape, np.nan), np.zeros(statistic.shape, dtype=np.bool_)
    return {
        "attack": repeated(name),
        "access": repeated(ATTACKS[name].access),
        "group": repeated(group),
        "model": np.repeat(np.arange(models, dtype=np.int32), size),
        "candidate": np.tile(ruling.rows.astype(np.int32), models),
        "member": (never if membership is None else membership[:, ruling.rows]).ravel(),
        "statistic": statistic.astype(np.float64).ravel(),
        "p": (nowhere if ruling.p is None else ruling.p.get(group, nowhere)).ravel(),
        "decision": ruling.decision.get(group, never).ravel(),
        "queries": np.full(statistic.size, ruling.queries, dtype=np.int32),
    }


@dataclass(frozen=True)
class Judged:
    """The table's rows about one attack, as matrices (models, M) over its M candidates.

    ``statistic`` of each group, ``score`` of targets (p turned round where there is one, else the statistic; −∞ where
    the attack failed), ``decision`` of targets and null models, ``member`` (T, M), ``sets``: named sets (M,).
    """

    attack: type[Attack]
    queries: int
    statistic: Mapping[Group, Floats]
    score: Floats
    decision: Mapping[Group, Bools]
    member: Bools
    sets: Mapping[str, Bools]

    def on(self, chosen: Bools) -> Judged:
        """Return what is said of the ``chosen`` (M,) candidates."""
        return replace(
            self,
            statistic={group: values[:, chosen] for group, values in self.statistic.items()},
            score=self.score[:, chosen],
            decision={group: values[:, chosen] for group, values in self.decision.items()},
            member=self.member[:, chosen],
            sets={name: held[chosen] for name, held in self.sets.items()},
        )

    def decider(self, group: Group, beta: float, pool_sets: float) -> tuple[Decide, int]:
        """Return the decisions about a group as a function of the reference models taken, and how many of these are.

        An attack that does not rank decides alike whatever is taken. Raises BadInput where the decisions in the table
        were not made at ``beta`` for such a pool.
        """
        found = self.decision[group]
        if not self.attack.ranked:
            return (lambda rows: found), 1
        reference = self.statistic["reference"]
        decide = self.attack.decider(self.statistic[group], reference, beta, pool_sets)
        if not np.array_equal(decide(np.arange(len(reference))), found):
            raise BadInput(
                f"the decisions of {self.attack.name} in the table are not those at beta = {beta:g} with a pool of "
                f"{pool_sets:g} training sets (inf: raw ranks); give the beta and pool_sets of the plan"
            )
        return decide, len(reference)


def matrices_of(name: str, columns: Columns, selectors: Sequence[str]) -> Judged:
    """Return the rows of the attack ``name`` as matrices; BadInput where a pair has no row or two."""
    own = columns["attack"] == name
    part = {column: values[own] for column, values in columns.items() if column != "attack"}
    candidates, first = np.unique(part["candidate"], return_index=True)
    place = np.searchsorted(candidates, part["candidate"])

    def matrix(column: str, group: Group) -> NDArray[Any]:
        of = part["group"] == group
        models = int(part["model"][of].max(initial=-1)) + 1
        at, values = part["model"][of] * candidates.size + place[of], part[column][of]
        if at.size != models * candidates.size or np.unique(at).size != at.size:
            raise BadInput(f"the table of scores lacks or repeats rows of {name}, group {group}; make it again")
        table = np.empty(at.size, dtype=values.dtype)
        table[at] = values
        return table.reshape(models, candidates.size)

    p, statistic = matrix("p", "target"), {group: matrix("statistic", group) for group in GROUPS}
    score = member_score(statistic["target"], p)
    return Judged(
        attack=ATTACKS[name],
        queries=int(part["queries"][0]),
        statistic=statistic,
        score=np.where(np.isnan(score), -np.inf, score),
        decision={group: matrix("decision", group) for group in JUDGED},
        member=matrix("member", "target"),
        sets={selector: (part[f"q_{selector}"] & part["asked"])[first] for selector in selectors},
    )


def member_score(statistic: Floats, p: Floats | None) -> Floats:
    """Return what members are told by, larger = more member-like: p turned round, or statistics where there is none."""
    return statistic if p is None or np.isnan(p).all() else -p


def cells(
    columns: Columns,
    *,
    selectors: Sequence[str],
    beta: float,
    pool_sets: float = NO_CORRECTION,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Return the cells of one setting from its ``columns`` (``scores_rows``), by selection, then by attack.

    Rates with intervals of confidence ``level`` from ``draws`` draws by ``seed``, a rate of 0/0 None; counts are those
    of the decisions in the table, which were made at ``beta`` and ``pool_sets`` (see ``JudgeSettings``). A candidate at
    which an attack failed counts as asked and never called. A set without candidates has counts of 0 and no rates.
    Raises BadInput for tables that lack rows and for decisions at another beta or pool.
    """
    everyone = [matrices_of(name, columns, selectors) for name in dict.fromkeys(columns["attack"])]
    whole = {each.attack.name: np.ones(each.member.shape[1], dtype=np.bool_) for each in everyone}
    pairs = [(selector, each, each.sets[selector]) for selector in selectors for each in everyone]
    pairs += [("all", each, whole[each.attack.name]) for each in everyone if each.attack.access != "labels"]
    tested = Tested(beta, pool_sets, level, draws, seed)
    return [_cell(selection, each.on(chosen), tested) for selection, each, chosen in pairs]


@dataclass(frozen=True)
class Tested:
    """Settings by which rates are tested and resampled; fields as in ``cells``."""

    beta: float
    pool_sets: float
    level: float
    draws: int
    seed: int


def _cell(selection: str, seen: Judged, tested: Tested) -> dict[str, Any]:
    """Return the cell of one attack on its candidates."""
    targets, null = _outcomes(seen, tested)
    promises = seen.attack.promises(selection)
    n_ref = len(seen.statistic["reference"])
    return {
        "selection": selection,
        "attack": seen.attack.name,
        "access": seen.attack.access,
        "beta": tested.beta,
        "attained": seen.attack.attained(tested.beta, n_ref, tested.pool_sets),
        "candidates": targets.candidates,
        "targets": targets.targets,
        "true_positives": targets.true_positives,
        "false_positives": targets.false_positives,
        "members": targets.members,
        "non_members": targets.non_members,
        "expected_false_positives": targets.expected_false_positives if promises else None,
        **_named("precision", targets.precision),
        **_named("coverage", targets.coverage),
        **_named("fpr", targets.fpr),
        **_auc(seen.score, seen.member, tested.level),
        **null_fields(null, promises),
        "queries_per_point": seen.queries,
        "failed": int(np.isnan(seen.statistic["target"]).sum()),
    }


def _outcomes(seen: Judged, tested: Tested) -> tuple[Outcome, Outcome]:
    """Return what was measured on targets and on null models; counts of 0 and no rates where there is nobody."""
    if not seen.decision["target"].size:
        return _nobody(*seen.decision["target"].shape), null_outcome(seen, tested)
    decide, n_ref = seen.decider("target", tested.beta, tested.pool_sets)
    return (
        measure(decide, n_ref, seen.member, tested.beta, level=tested.level, draws=tested.draws, seed=tested.seed),
        null_outcome(seen, tested),
    )


def null_fields(null: Outcome, promises: bool) -> dict[str, Any]:
    """Return what a cell tells of null models; ``promises``: whether its attack has a level."""
    return {
        "null_models": null.targets,
        "null_candidates": null.candidates,
        "null_fpr": null.fpr.value,
        "null_fpr_low": null.fpr.low,
        "null_fpr_high": null.fpr.high,
        "null_false_positives": null.false_positives,
        "null_pairs": null.non_members,
        "null_expected": null.expected_false_positives if promises else None,
    }


def null_outcome(seen: Judged, tested: Tested) -> Outcome:
    """Return what was measured on null models; counts of 0 and no rates where there are none."""
    if not seen.decision["null"].size:
        return _nobody(*seen.decision["null"].shape)
    decide, n_ref = seen.decider("null", tested.beta, tested.pool_sets)
    return measure_null(decide, n_ref, tested.beta, level=tested.level, draws=tested.draws, seed=tested.seed)


def _nobody(models: int, candidates: int) -> Outcome:
    """Return the outcome of asking nobody, or about nothing."""
    return Outcome(models, candidates, 0, 0, 0, 0, 0.0, NOTHING, NOTHING, NOTHING)


def _named(name: str, rate: Rate) -> dict[str, float | None]:
    """Return a rate and its intervals as entries of a cell."""
    ends = {end: getattr(rate, end) for end in ("low", "high", "t_low", "t_high")}
    return {name: rate.value, **{f"{name}_{end}": value for end, value in ends.items()}}


def _auc(score: Floats, member: Bools, level: float) -> dict[str, float | None]:
    """Return the mean over targets of the AUC within each, and its t interval, over targets with both kinds."""
    both = [(own, flags) for own, flags in zip(score, member, strict=True) if flags.any() and not flags.all()]
    values = [roc.auc(own, flags) for own, flags in both]
    low, high = intervals.ibragimov_mueller_t(values, level) if len(values) > 1 else (None, None)
    return {
        "auc": float(np.mean(values)) if values else None,
        "auc_low": None if low is None else max(0.0, low),
        "auc_high": None if high is None else min(1.0, high),
    }


def overfitted_rows(rulings: Mapping[str, Ruling], membership: Bools, level: float = 0.95) -> list[dict[str, Any]]:
    """Return how well each attack tells members of over-fitted models: the mean of the AUC within each model.

    ``membership`` (C, K) of over-fitted models; rulings are those of ``apart``. Each attack is judged on all candidates
    that it rules on, without a selection. Intervals of confidence ``level`` are t intervals over the models. Nothing
    where there are none.
    """
    found = []
    for name, ruling in rulings.items() if len(membership) else ():
        statistic, member = ruling.statistic["overfitted"], membership[:, ruling.rows]
        p = None if ruling.p is None else ruling.p["overfitted"]
        score = member_score(statistic, p)
        found.append(
            {
                "attack": name,
                "access": ATTACKS[name].access,
                "models": len(member),
                "candidates": member.shape[1],
                **_auc(np.where(np.isnan(score), -np.inf, score), member, level),
            }
        )
    return found


def apart(ruling: Ruling, null: int) -> Ruling:
    """Return a ruling whose ``null`` models are the first so many of its group, the others a group "overfitted"."""

    def cut(given: Mapping[Group, NDArray[Any]]) -> dict[Group, NDArray[Any]]:
        return {**given, "null": given["null"][:null], "overfitted": given["null"][null:]}

    return replace(
        ruling,
        statistic=cut(ruling.statistic),
        decision=cut(ruling.decision),
        p=None if ruling.p is None else cut(ruling.p),
    )
