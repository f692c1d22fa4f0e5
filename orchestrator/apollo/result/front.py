"""The trade of a sweep of defences: an attack's AUC against accuracy, and the settings that no other beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.errors import BadInput
from audits.seeds import derive_seed
from audits.statistics.intervals import ibragimov_mueller_t
from audits.statistics.pareto import front_shares, on_front
from audits.statistics.summary import cells, per_target_auc
from orchestrator.apollo.result.rows import Front, FrontRow, UtilityRow
from orchestrator.judgement.estimate import Estimate

if TYPE_CHECKING:
    from audits.arrays import Floats

CHANCE = 0.5
ACCURACY = ".utility.test_accuracy"


def parts_of(trade: tuple[str, str]) -> tuple[str, str]:
    """Return unlearner and attack of a trade; raises BadInput for names that are none of it."""
    unlearner, _, attack = trade[0].removesuffix(".auc").partition(".")
    if not (unlearner and attack and trade[0].endswith(".auc") and trade[1] == f"{unlearner}{ACCURACY}"):
        raise BadInput(f"trade {trade} cannot be told; write METHOD.ATTACK.auc and METHOD{ACCURACY} of one method")
    return unlearner, attack


def can_be_told(pair: tuple[str, str]) -> bool:
    """Return whether two metrics of a search, the one to lower and the one to raise, are a trade."""
    try:
        parts_of(pair)
    except BadInput:
        return False
    return True


def front_of(
    trade: tuple[str, str],
    columns: Mapping[str, Any],
    utility: Mapping[str, Sequence[UtilityRow]],
    *,
    level: float,
    draws: int,
    seed: int,
) -> Front | None:
    """Return the trade of every setting that has both numbers for the same targets; None for less than two settings.

    ``columns``: the scores table; ``utility``: setting → its rows. Where settings are compared, an AUC below ½ counts
    as ½.
    """
    unlearner, attack = parts_of(trade)
    wanted = (columns["unlearner"] == unlearner) & (columns["attack"] == attack)
    areas = {
        cell.setting: per_target_auc(cell) for cell in cells({name: each[wanted] for name, each in columns.items()})
    }
    accuracies = {
        setting: {row.target: row.test_accuracy for row in rows if row.unlearner == unlearner}
        for setting, rows in utility.items()
    }
    named = [
        setting for setting in accuracies if setting in areas and areas[setting].keys() == accuracies[setting].keys()
    ]
    targets = sorted(areas[named[0]]) if named else []
    named = [setting for setting in named if sorted(areas[setting]) == targets]
    if len(named) < 2 or len(targets) < 2:
        return None
    risk, worth = (
        np.array([[found[name][each] for name in named] for each in targets]) for found in (areas, accuracies)
    )
    best = on_front(risk.mean(axis=0), worth.mean(axis=0), floor=CHANCE)
    shares = front_shares(risk, worth, draws=draws, seed=derive_seed(seed, "front"), floor=CHANCE)
    rows = tuple(
        FrontRow(
            setting=name,
            auc=over_targets(risk[:, place], level),
            accuracy=over_targets(worth[:, place], level),
            on_front=bool(best[place]),
            share=float(shares[place]),
        )
        for place, name in enumerate(named)
    )
    return Front(unlearner=unlearner, attack=attack, targets=len(targets), draws=draws, settings=rows)


def over_targets(values: Floats, level: float) -> Estimate:
    """Return the mean of one value per target with its t interval, cut to [0, 1]."""
    low, high = ibragimov_mueller_t(values, level)
    return Estimate(float(values.mean()), max(0.0, low), min(1.0, high))
