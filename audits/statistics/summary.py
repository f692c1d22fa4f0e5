"""From the scores table to the table of results.

AUC here means the mean of the AUCs within each target, all targets weighing the same: scores of different targets never
meet, so a target whose scores are all higher (another shadow set, a luckier training run) neither adds nor hides power.
The AUC of the pooled scores stands beside it (``auc_pooled``). The ROC figures average the curves of the targets at
equal FPR, whose area is the same mean. Intervals speak about further targets: the target is the unit that varies.
Where targets share points and shadows, the ``unit`` is what holds them together, such as a pool: the value of a unit is
the mean of its targets', and permutations move a point in all targets of a unit at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed
from audits.statistics import chance, controls, intervals, null, roc
from audits.statistics.judged import rows_by
from audits.statistics.one_target import area_interval

Columns = Mapping[str, NDArray[Any]]
Row = dict[str, Any]
Permute = Callable[..., Floats]
"""``null.permutation_p``, or what takes and returns the same."""
Known = Mapping[tuple[str, str], int]
NONE_KNOWN: Known = {}


@dataclass(frozen=True)
class Difference:
    """Mean over targets of AUC(a) − AUC(b) with its t interval and two-sided p-value."""

    mean: float
    low: float
    high: float
    p: float
    targets: int


@dataclass(frozen=True)
class Cell:
    """The rows of one setting × unlearner × attack, sorted by target and point."""

    setting: str
    unlearner: str
    attack: str
    columns: dict[str, NDArray[Any]]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores (n,), higher = more likely forgotten."""
        return self.columns["score"].astype(np.float64)

    @property
    def member(self) -> NDArray[np.bool_]:
        """True for forget points (n,)."""
        return np.asarray(self.columns["group"] == "forget")

    @property
    def target(self) -> NDArray[Any]:
        """Target of each row (n,)."""
        return self.columns["target"]


def cells(scores: Columns, *, retained: bool = False) -> Iterator[Cell]:
    """Yield the cells of a scores table, in the order in which settings, unlearners and attacks first appear.

    The question is forget against unseen: points of the retain set are left out unless ``retained``.
    """
    arrays = {name: np.asarray(column) for name, column in scores.items()}
    if not retained:
        asked = arrays["group"] != "retained"
        arrays = {name: column[asked] for name, column in arrays.items()}
    codes, names = [], []
    for name in ("setting", "unlearner", "attack"):
        distinct, first, code = np.unique(arrays[name].astype(str), return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        codes.append(rank[code])
        names.append(distinct[np.argsort(first)])
    order = np.lexsort((arrays["point_id"], arrays["target"], *codes[::-1]))
    keys = np.stack(codes, axis=1)[order]
    changes = np.append(True, (np.diff(keys, axis=0) != 0).any(axis=1)) if len(keys) else np.zeros(0, dtype=bool)
    starts = np.flatnonzero(changes)
    for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
        rows = order[start:stop]
        setting, unlearner, attack = (str(names[axis][keys[start, axis]]) for axis in range(3))
        yield Cell(setting, unlearner, attack, {name: column[rows] for name, column in arrays.items()})


def summarise(
    scores: Columns,
    fprs: Sequence[float],
    *,
    level: float = 0.95,
    bootstrap: int = 2000,
    permutations: int = 2000,
    seed: int = 0,
    groups: NDArray[np.int64] | None = None,
    unit: str = "target",
    known: Known = NONE_KNOWN,
) -> list[Row]:
    """Return one row for each setting × unlearner × attack × promised FPR.

    AUC: mean within-target AUC, t interval over targets (``auc_low``/``auc_high``; DeLong over points when there is one
    target), percentile bootstrap over targets (``auc_bootstrap_*``), two-sided permutation p-value (``auc_p``) and the
    same after Holm's correction over all cells of the setting (``auc_p_holm``); ``above_chance``: by both
    (:mod:`audits.statistics.chance`). Permutations are raised to what Holm needs where the request is too small.
    ``groups`` (N,): the group of every point of the data set, where whole groups were dealt; then whole groups are
    permuted.
    ``tpr`` and ``found_fpr``: shares of forget and of unseen points that the attack calls "unlearned" at the threshold
    fixed for ``promised_fpr`` before the target was asked; intervals allow for targets (``*_low``/``*_high``), beside
    the binomial one (``*_exact_*``); ``found_fpr_p``: of "the rate is at most ``promised_fpr``", ``found_fpr_below_p``:
    of "it is at least that", for the correction of :mod:`audits.statistics.controls`. ``roc_tpr``: TPR at that FPR with
    the threshold from the unseen points of the other targets; None with a single target. ``unit``: the column of what
    varies, intervals are over its values; targets of one unit are asked about the same points. Raises BadInput for an
    FPR that the unseen points cannot resolve. ``known``: how many points whose side was known set the thresholds of a
    (setting, attack), for ``audits.statistics.controls.beside_known``; 0 where it is not named.
    """
    return summarise_cells(
        cells(scores),
        fprs,
        level=level,
        bootstrap=bootstrap,
        permutations=permutations,
        seed=seed,
        groups=groups,
        unit=unit,
        known=known,
    )


def summarise_cells(
    found: Iterable[Cell],
    fprs: Sequence[float],
    *,
    level: float = 0.95,
    bootstrap: int = 2000,
    permutations: int = 2000,
    seed: int = 0,
    groups: NDArray[np.int64] | None = None,
    unit: str = "target",
    known: Known = NONE_KNOWN,
    permute: Permute = null.permutation_p,
) -> list[Row]:
    """Return the rows of :func:`summarise` for cells that are cut already; ``permute`` gives their p-values."""
    rows: list[Row] = []
    setting_cells: dict[str, list[Cell]] = {}
    for cell in found:
        setting_cells.setdefault(cell.setting, []).append(cell)
    for setting, family in setting_cells.items():
        draws = max(permutations, null.needed_permutations(len(family), level))
        raw = _permutation_ps(family, draws, derive_seed(seed, Purpose.PERMUTATION, setting), groups, unit, permute)
        for cell, p, adjusted in zip(family, raw, null.holm(raw), strict=True):
            area = _area(cell, level, bootstrap, derive_seed(seed, Purpose.BOOTSTRAP), unit)
            area |= {"auc_p": float(p), "auc_p_holm": float(adjusted)}
            area["above_chance"] = chance.standing(area["auc"], area["auc_low"], adjusted, level) == chance.ABOVE
            rows += [_row(cell, fpr, area, level, unit, known.get((setting, cell.attack), 0)) for fpr in fprs]
    return rows


def per_target_auc(cell: Cell) -> dict[int, float]:
    """Return the AUC of each target of a cell."""
    values = roc.within_auc(cell.scores, cell.member, cell.target)
    return {int(name): float(value) for name, value in zip(np.unique(cell.target), values, strict=True)}


def holm_overview(rows: Sequence[Row], level: float = 0.95) -> dict[str, Any]:
    """Return which rows of :func:`summarise` differ from chance, by setting (each setting is one Holm family)."""
    families: dict[str, dict[str, Row]] = {}
    for row in rows:
        families.setdefault(row["setting"], {})[f"{row['unlearner']}/{row['attack']}"] = row
    return {
        setting: {
            "alpha": round(1.0 - level, 12),
            "tests": len(family),
            "above": [name for name, row in family.items() if row["above_chance"]],
            "below": [name for name, row in family.items() if row["auc_p_holm"] <= 1.0 - level and row["auc"] <= 0.5],
        }
        for setting, family in families.items()
    }


def paired_difference(a: Mapping[int, float], b: Mapping[int, float], level: float = 0.95) -> Difference:
    """Compare two attacks on the same targets: values per target as from :func:`per_target_auc`."""
    from scipy.special import stdtr

    if set(a) != set(b):
        raise BadInput(f"attacks can only be compared on the same targets, got {sorted(a)} and {sorted(b)}")
    values = np.array([a[name] - b[name] for name in sorted(a)])
    low, high = intervals.ibragimov_mueller_t(values, level)
    error = values.std(ddof=1) / math.sqrt(values.size)
    mean = float(values.mean())
    if error == 0.0:
        p = 1.0 if mean == 0.0 else 0.0
    else:
        p = float(2.0 * stdtr(values.size - 1, -abs(mean) / error))
    return Difference(mean, low, high, p, values.size)


def _permutation_ps(
    family: Sequence[Cell], draws: int, seed: int, groups: NDArray[np.int64] | None, unit: str, permute: Permute
) -> NDArray[np.float64]:
    """Return the p-value of each cell; cells that judge the same points share the relabelings (one matrix product)."""
    shared: dict[bytes, list[int]] = {}
    for index, cell in enumerate(family):
        layout = cell.target.tobytes() + cell.member.tobytes()
        layout += b"" if groups is None else groups[cell.columns["point_id"]].tobytes()
        shared.setdefault(layout, []).append(index)
    result = np.empty(len(family))
    for indices in shared.values():
        columns = np.stack([family[index].scores for index in indices], axis=1)
        first = family[indices[0]]
        dealt = None if groups is None else groups[first.columns["point_id"]]
        together = None if unit == "target" else (first.columns[unit], first.columns["point_id"])
        result[indices] = permute(
            columns, first.member, first.target, draws=draws, seed=seed, groups=dealt, together=together
        )
    return result


def _area(cell: Cell, level: float, draws: int, seed: int, unit: str) -> Row:
    """Return the AUC fields of a cell."""
    scores, member = roc.as_scores(cell.scores, cell.member)
    parts = [(scores[rows], member[rows]) for rows in rows_by(cell.target)]
    pairs = np.array([float(own.sum() * (~own).sum()) for _, own in parts])
    if not pairs.all():
        raise BadInput(f"{cell.setting}/{cell.unlearner}/{cell.attack}: a target lacks forget or unseen points")
    values = np.array([roc.wins(part[own], part[~own]) for part, own in parts]) / pairs
    if unit != "target":
        values = _of_units(cell, values, unit)
    if values.size > 1:
        low, high = intervals.ibragimov_mueller_t(values, level)
        again = intervals.cluster_bootstrap(
            intervals.mean_over_clusters(values), values.size, level=level, draws=draws, seed=seed
        )
    else:
        low, high = again = _over_points(cell, level)
    return {
        "auc": float(values.mean()),
        "auc_low": max(0.0, low),
        "auc_high": min(1.0, high),
        "auc_bootstrap_low": again[0],
        "auc_bootstrap_high": again[1],
        "auc_pooled": roc.auc(scores, member),
    }


def _of_units(cell: Cell, values: NDArray[np.float64], unit: str) -> NDArray[np.float64]:
    """Return the mean of one value per target over the targets of each unit."""
    _, first = np.unique(cell.target, return_index=True)
    names, place = np.unique(cell.columns[unit][first], return_inverse=True)
    return np.asarray(np.bincount(place, values) / np.bincount(place, minlength=names.size))


def _over_points(cell: Cell, level: float) -> tuple[float, float]:
    """Return an interval over the points of the one unit: the mean of the ends of its targets' intervals.

    So long an interval of their mean would be if their errors were one and the same; it is no longer otherwise.
    """
    rows = [cell.target == name for name in np.unique(cell.target)]
    ends = [area_interval(cell.scores[own], cell.member[own], level=level) for own in rows]
    return float(np.mean([low for _, low, _ in ends])), float(np.mean([high for _, _, high in ends]))


def _row(cell: Cell, fpr: float, area: Row, level: float, unit: str, known: int) -> Row:
    """Return the complete row of a cell at one promised FPR."""
    roc.check_resolvable(fpr, int((~cell.member).sum()))
    targets = np.unique(cell.target).size
    crossed = roc.cross_fitted_tpr(cell.scores, cell.member, cell.target, fpr) if targets > 1 else None
    called = _calls(cell, ~cell.member, f"decision_{fpr:g}", unit)
    return {
        "setting": cell.setting,
        "unlearner": cell.unlearner,
        "attack": cell.attack,
        "access": str(cell.columns["access"][0]),
        **area,
        "promised_fpr": float(fpr),
        **_rate(cell, cell.member, f"decision_{fpr:g}", "tpr", level, unit),
        **_rate(cell, ~cell.member, f"decision_{fpr:g}", "found_fpr", level, unit),
        "found_fpr_p": controls.clustered_rate_p(*called, fpr, level, known=known),
        "found_fpr_below_p": controls.clustered_rate_p(*called, fpr, level, below=True, known=known),
        "roc_tpr": None if crossed is None else float(crossed.mean()),
        "queries_per_point": float(cell.columns["queries"].mean()),
        "targets": int(targets),
        "forget": int(cell.member.sum()),
        "unseen": int((~cell.member).sum()),
    }


def _rate(cell: Cell, rows: NDArray[np.bool_], column: str, name: str, level: float, unit: str) -> Row:
    """Return the share of ``rows`` called "unlearned", its interval over targets and the exact binomial one."""
    hits, sizes = _calls(cell, rows, column, unit)
    low, high = intervals.clustered_rate(hits, sizes, level)
    exact = intervals.clopper_pearson(float(hits.sum()), float(sizes.sum()), level)
    return {
        name: float(hits.sum() / sizes.sum()),
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_exact_low": exact[0],
        f"{name}_exact_high": exact[1],
    }


def _calls(
    cell: Cell, rows: NDArray[np.bool_], column: str, unit: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many of ``rows`` are called "unlearned", and how many there are, by unit (G,)."""
    if column not in cell.columns:
        raise BadInput(f"the scores table has no column {column!r}")
    decisions = cell.columns[column].astype(np.float64)
    parts = [own[rows[own]] for own in rows_by(cell.columns[unit])]
    return np.array([decisions[own].sum() for own in parts]), np.array([float(own.size) for own in parts])
