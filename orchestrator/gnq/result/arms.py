"""Rows about the arms: AUCs of all attacks, the arms with their headlines, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audits.gnq.attacks import POOL_ATTACKS
from audits.gnq.removal import two_sided_auc
from audits.statistics.epsilon_bound import epsilon_bound
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.result.gather import (
    CORRELATION,
    RATE,
    Assessments,
    Found,
    Place,
    corrected,
    interval,
    mean,
    paired,
    pool_means,
)
from orchestrator.gnq.result.rows import AreaRow, ArmRow, ComparisonRow, EpsilonRow, Headline, Onion
from orchestrator.report.chance import beyond

AGAINST = ("random", "loss_log")
"""Rankings by which the same is done as a control: removal, or noise."""


def table(setting: str, found: Assessments, level: float) -> list[AreaRow]:
    """Return the AUC of each arm × group × attack × shadows × moment, with its interval over pools."""
    rows = []
    for arm, place, pools in cells(found):
        means = pool_means(pools)
        auc = interval(means, level, RATE)
        known = [[value for value in pool if value is not None] for pool in pools]
        both = len(pools) > 1 and place.group.startswith("removed") and known == pools
        sides = interval([float(one.mean()) for one in two_sided_auc(known)] if both else [], level, RATE)
        rows.append(
            AreaRow(
                setting=setting,
                arm=arm,
                **place._asdict(),
                access=POOL_ATTACKS[place.attack].access,
                pools=len(pools),
                targets=sum(len(pool) for pool in pools),
                auc=auc,
                two_sided=sides,
            )
        )
    return rows


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
    setting: str,
    plan: Any,
    found: Assessments,
    fitted: Mapping[str, list[list[Found]]],
    rows: Sequence[AreaRow],
    level: float,
) -> list[ArmRow]:
    """Return one row an arm: what it is, how well its models fit, its headline, and its onion effect.

    An arm that is not in ``found`` has diverged: what is measured is None there.
    """
    lines = []
    for arm, defence in plan.arms.items():
        every = [model for pool in fitted[arm] for model in pool]
        first = every[0] if every else {}
        test = interval([mean(model["test_accuracy"] for model in pool) for pool in fitted[arm]], level, RATE)
        lines.append(
            ArmRow(
                setting=setting,
                arm=arm,
                method=NONE if defence is None else defence.method,
                ranking=None if defence is None else defence.ranking,
                share=None if defence is None else defence.share,
                strength=None if defence is None else defence.strength,
                diverged=arm not in found,
                epsilon=first.get("epsilon"),
                epsilon_low=first.get("epsilon_low"),
                delta=first.get("delta"),
                accountant=first.get("accountant"),
                trained_on=mean(model["points"] for model in every) if every else None,
                steps=first.get("steps"),
                last_batch=first.get("last_batch"),
                train_accuracy=mean(model["train_accuracy"] for model in every) if every else None,
                test_accuracy=test,
                headline=headline(arm, rows),
                onion=onion(found.get(arm, ()), level),
            )
        )
    return lines


def epsilons(
    setting: str, found: Assessments, fitted: Mapping[str, list[list[Found]]], level: float
) -> list[EpsilonRow]:
    """Return lower bounds on the ε of private arms, at ``level`` for all of an arm and moment together (Bonferroni).

    Pools share no point, so that the coins of one model of each are as many independent coins of one mechanism.
    """
    rows = []
    for arm, pools in found.items():
        delta = next((model["delta"] for pool in fitted[arm] for model in pool if "delta" in model), None)
        told = [pool["guesses"] for pool in pools if "guesses" in pool]
        if delta is None or not told or len(told) < len(pools):
            continue
        for same in zip(*told, strict=True):
            first = same[0]
            tests = sum(row["moment"] == first["moment"] for row in told[0])
            counts = {name: sum(row[name] for row in same) for name in ("pairs", "guesses", "right")}
            bound = epsilon_bound(
                counts["right"], counts["guesses"], counts["pairs"], delta, 1.0 - (1.0 - level) / tests
            )
            place = {name: first[name] for name in ("attack", "shadows", "moment", "share")}
            rows.append(
                EpsilonRow(setting=setting, arm=arm, **place, pools=len(same), **counts, delta=delta, at_least=bound)
            )
    return rows


def headline(arm: str, rows: Sequence[AreaRow]) -> Headline | None:
    """Return the attack of largest mean AUC on all contributors; its shadows know the arm."""
    knows = ("none", "naive") if arm == NONE else ("none", "adaptive")
    told = [
        row
        for row in rows
        if (row.arm, row.group, row.moment) == (arm, "contributors", "after") and row.shadows in knows and row.auc.known
    ]
    if not told:
        return None
    best = max(told, key=lambda row: float(row.auc))
    return Headline(attack=best.attack, auc=best.auc, above_chance=beyond(best.auc))


def onion(pools: Sequence[Found], level: float) -> Onion | None:
    """Return the shares of fully exposed kept points before and after a removal, means over pools."""
    seen = [pool["onion"] for pool in pools if pool["onion"] is not None]
    if not seen:
        return None
    return Onion(
        points=sum(pool["points"] for pool in seen),
        before=mean(pool["before"] for pool in seen),
        after=interval([pool["after"] for pool in seen], level, RATE),
        change=interval([pool["after"] - pool["before"] for pool in seen], level, CORRELATION),
        floor=seen[0]["floor"],
    )


def comparisons(
    setting: str, plan: Any, found: Assessments, fitted: Mapping[str, list[list[Found]]], level: float
) -> list[ComparisonRow]:
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
                difference, p = paired(areas[arm, place], areas[other, base], level)
                cost, _ = paired(accuracy[arm], accuracy[other], level)
                rows.append(
                    ComparisonRow(
                        setting=setting,
                        arm=arm,
                        against=other,
                        group=place.group,
                        attack=place.attack,
                        shadows=place.shadows,
                        difference=difference,
                        p=p,
                        accuracy=cost,
                    )
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
