"""Rows about a run that repeats one plan on several seeds: what an arm changes, over seeds and pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from audits.arrays import Floats
from audits.statistics.intervals import nested_t
from orchestrator.gnq.result.arms import cells, opponents
from orchestrator.gnq.result.gather import Assessments, Place, pool_means
from orchestrator.gnq.result.rows import SeedRow
from orchestrator.judgement.estimate import Estimate

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting

SEED = "seed"
Areas = Mapping[tuple[str, Place], list[float | None]]
"""Arm and place in the table → AUC by pool."""


def seed_rows(settings: Sequence[Setting], found: Mapping[str, Assessments], level: float) -> list[SeedRow]:
    """Return each arm minus those it is compared with, paired by pool, over the seeds of ``settings``.

    ``found``: setting → its assessments. Nothing unless there are two seeds or more and nothing else differs.
    """
    if not only_seeds(settings):
        return []
    rows = []
    plan = settings[0].plan
    areas = [
        {(arm, place): pool_means(pools) for arm, place, pools in cells(found[setting.name])} for setting in settings
    ]
    for arm, other in opponents(plan):
        for name, place in areas[0]:
            if name != arm or place.moment != "after" or place.shadows == "naive" or place.group != "contributors":
                continue
            base = place if other != "none" or place.shadows == "none" else place._replace(shadows="naive")
            values = differences(areas, (arm, place), (other, base))
            if values is None:
                continue
            low, high = nested_t(values, level)
            means = values.mean(axis=1)
            rows.append(
                SeedRow(
                    arm=arm,
                    against=other,
                    group=place.group,
                    attack=place.attack,
                    shadows=place.shadows,
                    seeds=len(values),
                    pools=values.shape[1],
                    difference=Estimate(float(means.mean()), low, high),
                    spread=float(means.std(ddof=1)),
                )
            )
    return rows


def differences(areas: Sequence[Areas], one: tuple[str, Place], other: tuple[str, Place]) -> Floats | None:
    """Return the AUCs in one place minus those in another, (seeds, pools) float64; None where any is missing."""
    pairs = [(own.get(one, [None]), own.get(other, [None])) for own in areas]
    if any(None in part for pair in pairs for part in pair):
        return None
    found: Floats = np.array(pairs, np.float64)
    return found[:, 0] - found[:, 1]


def only_seeds(settings: Sequence[Setting]) -> bool:
    """Say whether settings, two or more, differ in their seeds and in nothing else."""
    seeds = {setting.overrides.get(SEED) for setting in settings}
    rest = [{name: value for name, value in setting.overrides.items() if name != SEED} for setting in settings]
    return len(settings) > 1 and len(seeds) == len(settings) and all(each == rest[0] for each in rest)
