"""Sizes of a rehearsal, and what an attack finds of each single target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics.roc import auc
from audits.tmia.attacks import Ruling
from audits.tmia.cells import scores_rows
from audits.tmia.design import MembershipSplit, make_membership, warnings_of
from audits.tmia.per_target import MEASURES, per_target
from audits.tmia.rehearsal import rehearsal_split

SPLIT = MembershipSplit(
    targets=40, reference_models=100, null_models=20, candidates=1000, train_size=2000, attacker_points=30000
)


def test_a_rehearsal_has_the_sizes_of_the_audit_out_of_the_attackers_points():
    found = rehearsal_split(SPLIT, 4040)
    assert replace(found, attacker_points=30000, null_models=20) == SPLIT and found.null_models == 0
    filler = SPLIT.attacker_points - found.candidates - found.attacker_points
    assert found.attacker_points >= 10 * SPLIT.train_size and filler >= 3 * SPLIT.train_size
    assert warnings_of(found, filler)[0].startswith("split.null_models is 0")


@pytest.mark.parametrize("read", [10, 4040, 20000])
def test_its_sizes_do_not_depend_on_what_selectors_read(read):
    assert rehearsal_split(SPLIT, read) == rehearsal_split(SPLIT, 1)


@pytest.mark.parametrize(
    ("changes", "read"),
    [({"attacker_points": 3000}, 10), ({"attacker_points": 9000}, 7000), ({"candidates": 200, "train_size": 4000}, 9)],
)
def test_the_number_of_points_that_a_refusal_asks_for_suffices_and_no_smaller_one(changes, read):
    split = replace(SPLIT, **{"attacker_points": 5000, **changes})
    with pytest.raises(BadInput, match=r"give it \d+ or more, or lower split.candidates") as refused:
        rehearsal_split(split, read)
    number = int(str(refused.value).partition("give it ")[2].split()[0])
    found = rehearsal_split(replace(split, attacker_points=number), read)
    assert found.attacker_points >= max(read, split.train_size)
    make_membership(np.arange(number), found, seed=0)
    with pytest.raises(BadInput):
        rehearsal_split(replace(split, attacker_points=number - 2), read)


TARGETS, CANDIDATES = 6, 20


def columns(seed: int, empty: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a table of scores, and the arrays that it was made of."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(CANDIDATES)[:12]
    member = np.zeros((TARGETS, CANDIDATES), dtype=bool)
    for own in member:
        own[rng.permutation(CANDIDATES)[: CANDIDATES // 2]] = True
    models = {"target": TARGETS, "reference": 9, "null": 0}
    statistic = {name: rng.normal(size=(count, 12)) for name, count in models.items()}
    p = {name: rng.uniform(size=(models[name], 12)) for name in ("target", "null")}
    decision = {name: values < 0.3 for name, values in p.items()}
    decision["target"][0] = False  # nobody called
    selected = {"none": np.ones(CANDIDATES, dtype=bool), "kmeans": rng.uniform(size=CANDIDATES) < (0 if empty else 0.6)}
    asked = np.zeros(CANDIDATES, dtype=bool)
    asked[rows] = True
    ruling = Ruling(rows=rows, statistic=statistic, decision=decision, queries=316, p=p)
    table = scores_rows(
        {"tmia_distance": ruling}, member, np.arange(CANDIDATES) + 100, np.zeros(CANDIDATES, int), selected, asked
    )
    return table, {"rows": rows, "member": member, "p": p["target"], "called": decision["target"], **selected}


def slowly(made: dict[str, Any], selection: str, measure: str, target: int) -> float:
    """Return the same number, pair by pair."""
    called, chosen = {True: 0, False: 0}, {True: 0, False: 0}
    for place, candidate in enumerate(made["rows"]):
        if made[selection][candidate]:
            inside = bool(made["member"][target, candidate])
            chosen[inside] += 1
            called[inside] += bool(made["called"][target, place])
    if measure == "advantage":
        return called[True] / (CANDIDATES / 2) - called[False] / (CANDIDATES / 2)
    if measure == "coverage":
        return called[True] / chosen[True] if chosen[True] else 0.0
    if measure == "precision":
        if sum(called.values()):
            return called[True] / sum(called.values())
        return chosen[True] / sum(chosen.values()) if sum(chosen.values()) else 0.5
    own = [place for place, candidate in enumerate(made["rows"]) if made[selection][candidate]]
    inside = made["member"][target, made["rows"][own]]
    return auc(-made["p"][target, own], inside) if inside.any() and not inside.all() else 0.5


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("empty", [False, True])
def test_values_of_single_targets_are_those_of_a_count_by_hand(measure, empty):
    for seed in range(5):
        table, made = columns(seed, empty)
        for selection in ("none", "kmeans"):
            found = per_target(
                table, "tmia_distance", selection, measure, selectors=("none", "kmeans"), candidates=CANDIDATES
            )
            assert list(found) == list(range(TARGETS))
            for target, value in found.items():
                assert value == pytest.approx(slowly(made, selection, measure, target))


def test_an_unknown_measure_is_refused_with_a_close_match():
    with pytest.raises(BadInput, match="did you mean 'coverage'"):
        per_target(columns(0)[0], "tmia_distance", "none", "coverag", selectors=("none", "kmeans"), candidates=20)
