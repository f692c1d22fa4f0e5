"""What each arm gives away: the AUCs of all attacks, the arms with their headlines, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.disclosure.gathering import (
    CORRELATION,
    RATE,
    Assessments,
    Place,
    Row,
    corrected,
    interval,
    mean,
    paired,
    pool_means,
)
from orchestrator.disclosure.plan import NONE

AGAINST = ("random", "loss_log")
"""Rankings by which the same is done as a control: removal, or noise."""


def table(found: Assessments, level: float) -> list[Row]:
    """Return the AUC of each arm × group × attack × shadows × moment, with its interval over pools.

    Fair comparisons on fresh models have ``p`` of an AUC of ½ too, and ``p_holm`` over all of them.
    """
    from audits.disclosure.pool_attacks import POOL_ATTACKS
    from audits.disclosure.removal import ONE_SIDED, two_sided_auc

    rows = []
    for arm, place, pools in cells(found):
        means = pool_means(pools)
        auc = interval(means, level, RATE)
        tested = place.moment == "fresh" and place.group not in ONE_SIDED and auc.low is not None
        known = [[value for value in pool if value is not None] for pool in pools]
        both = len(pools) > 1 and place.group.startswith("removed") and known == pools
        side = interval([float(one.mean()) for one in two_sided_auc(known)] if both else [], level, RATE)
        rows.append(
            {
                "arm": arm,
                **place._asdict(),
                "access": POOL_ATTACKS[place.attack].access,
                "pools": len(pools),
                "targets": sum(len(pool) for pool in pools),
                **auc.row("auc"),
                **side.row("two_sided"),
                "p": paired(means, [0.5] * len(means), level).p if tested else None,
            }
        )
    return corrected(rows, ("moment",))


def cells(found: Assessments) -> list[tuple[str, Place, list[list[float | None]]]]:
    """Return arm, place in the table and the AUCs of its targets by pool."""
    gathered: dict[tuple[str, Place], list[list[float | None]]] = {}
    for arm, pools in found.items():
        for pool in pools:
            for row in pool["aucs"]:
                place = Place(row["group"], row["attack"], row["shadows"], row["moment"])
                gathered.setdefault((arm, place), []).append(row["auc"])
    return [(arm, place, pools) for (arm, place), pools in gathered.items()]


def at_random(plan: Any) -> dict[str, str]:
    """Return arm → the removal of as many points at random, for removals by another ranking."""
    found = {}
    for arm, other in opponents(plan):
        defence = plan.arms[other]
        if defence is not None and (defence.method, defence.ranking) == ("remove", AGAINST[0]):
            found[arm] = other
    return found


def arms(
    plan: Any, found: Assessments, fitted: Mapping[str, list[list[Row]]], rows: Sequence[Row], level: float
) -> list[Row]:
    """Return one row an arm: what it is, how well its models fit, its headline, and its onion effect.

    An arm that is not in ``found`` has diverged: what is measured is None there.
    """
    lines = []
    for arm, defence in plan.arms.items():
        every = [model for pool in fitted[arm] for model in pool]
        first = every[0] if every else {}
        test = interval([mean(model["test_accuracy"] for model in pool) for pool in fitted[arm]], level, RATE)
        lines.append(
            {
                "arm": arm,
                "method": NONE if defence is None else defence.method,
                "ranking": None if defence is None else defence.ranking,
                "share": None if defence is None else defence.share,
                "strength": None if defence is None else defence.strength,
                "diverged": arm not in found,
                "epsilon": first.get("epsilon"),
                "delta": first.get("delta"),
                "trained_on": mean(model["points"] for model in every) if every else None,
                "steps": first.get("steps"),
                "last_batch": first.get("last_batch"),
                "train_accuracy": mean(model["train_accuracy"] for model in every) if every else None,
                **test.row("test_accuracy"),
                "headline": headline(arm, rows),
                "onion": onion(found.get(arm, ()), level),
            }
        )
    return lines


def headline(arm: str, rows: Sequence[Row]) -> Row | None:
    """Return the attack of largest mean AUC on all contributors; its shadows know the arm."""
    knows = ("none", "naive") if arm == NONE else ("none", "adaptive")
    told = [
        row
        for row in rows
        if row["arm"] == arm
        and row["group"] == "contributors"
        and row["moment"] == "after"
        and row["shadows"] in knows
        and row["auc"] is not None
    ]
    if not told:
        return None
    best = max(told, key=lambda row: float(row["auc"]))
    return {"attack": best["attack"], "auc": best["auc"], "low": best["auc_low"], "high": best["auc_high"]}


def onion(pools: Sequence[Row], level: float) -> Row | None:
    """Return the shares of fully exposed kept points before and after a removal, means over pools."""
    seen = [pool["onion"] for pool in pools if pool["onion"] is not None]
    if not seen:
        return None
    after = interval([pool["after"] for pool in seen], level, RATE)
    change = interval([pool["after"] - pool["before"] for pool in seen], level, CORRELATION)
    return {
        "points": sum(pool["points"] for pool in seen),
        "before": mean(pool["before"] for pool in seen),
        **after.row("after"),
        **change.row("change"),
        "floor": seen[0]["floor"],
    }


def comparisons(plan: Any, found: Assessments, fitted: Mapping[str, list[list[Row]]], level: float) -> list[Row]:
    """Return the differences between arms, paired by pool; Holm's correction is over the arms of one comparison."""
    areas = {(arm, place): pool_means(pools) for arm, place, pools in cells(found)}
    accuracy = {arm: [mean(model["test_accuracy"] for model in pool) for pool in fitted[arm]] for arm in found}
    rows = []
    for arm, other in opponents(plan):
        for group in ("contributors", "kept"):
            for place in dict.fromkeys(place for name, place in areas if name == arm):
                if place.group != group or place.moment != "after" or place.shadows == "naive":
                    continue
                base = place if other != NONE or place.shadows == "none" else place._replace(shadows="naive")
                if (other, base) not in areas or None in (*areas[arm, place], *areas[other, base]):
                    continue
                difference = paired(areas[arm, place], areas[other, base], level)
                cost = paired(accuracy[arm], accuracy[other], level)
                rows.append(
                    {
                        "arm": arm,
                        "against": other,
                        "group": place.group,
                        "attack": place.attack,
                        "shadows": place.shadows,
                        "difference": difference.mean,
                        "low": difference.low,
                        "high": difference.high,
                        "p": difference.p,
                        "accuracy_difference": cost.mean,
                        "accuracy_low": cost.low,
                        "accuracy_high": cost.high,
                    }
                )
    return corrected(rows, ("against", "group", "attack"))


def opponents(plan: Any) -> list[tuple[str, str]]:
    """Return which arm is compared with which: all with none, removal and noise with the same by control rankings."""
    defended = {arm: defence for arm, defence in plan.arms.items() if defence is not None}
    found = []
    for arm, own in defended.items():
        found.append((arm, NONE))
        for name in AGAINST if own.ranking is not None else ():
            same = (own.method, own.share, own.strength, name)
            controls = [
                other
                for other, defence in defended.items()
                if (defence.method, defence.share, defence.strength, defence.ranking) == same
            ]
            found += [(arm, other) for other in controls if other != arm]
    return found
