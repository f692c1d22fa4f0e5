"""Stage assess: the points that a rule keeps are judged before and after the removal by shadows that know as much."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from audits.gnq.removal import GROUPS
from orchestrator.engine.run.attempts import Attempts
from orchestrator.gnq.result.arms import epsilons
from orchestrator.gnq.result.document import grouped_warnings, without
from orchestrator.gnq.stages.scene import Scene
from orchestrator.gnq.stages.scoring import CONTROL_GROUPS, all_judgements, knowing_the_rule
from tests.audits.gnq.test_removal import drawn, lira_slowly, pool

LABELS = np.arange(12) % 3


def scene() -> Scene:
    """Return a pool whose shadows answer otherwise once they have removed what their rule puts on top."""
    after, adaptive = pool(1, 1 / 3, seed=1), pool(20, 1 / 3, seed=2)
    naive = replace(adaptive, logits=drawn(40, 12, 3, seed=5), kept=adaptive.half)
    return Scene(
        before=replace(after, logits=drawn(2, 12, 3, seed=6)),
        after=after,
        naive=naive,
        adaptive=adaptive,
        null=None,
        labels=LABELS,
    )


def test_points_before_the_removal_are_judged_by_naive_shadows_and_by_ones_that_know_the_rule() -> None:
    design = SimpleNamespace(plan=SimpleNamespace(audit=SimpleNamespace(attacks=("loss", "lira"))))
    made = scene()
    found = all_judgements(design, made, 0, Attempts())["before"]
    places = [(row.group, row.attack, row.shadows) for row in found]
    assert max(Counter(places).values()) == 1
    assert {place for place in places if place[2] == "adaptive"} == {
        ("kept", "lira", "adaptive"),
        ("removed", "lira", "adaptive"),
    }
    assert {group for group, _, shadows in places if shadows == "naive"} == set(GROUPS)
    told = replace(made.naive, kept=made.adaptive.kept)
    for row in (row for row in found if row.shadows == "adaptive"):
        slow = [lira_slowly(target, told, LABELS, row.group) for target in made.before.logits]
        np.testing.assert_allclose(row.scores, slow, rtol=1e-9, atol=1e-9)
    naive = next(row for row in found if (row.group, row.attack, row.shadows) == ("kept", "lira", "naive"))
    slow = [lira_slowly(target, made.naive, LABELS, "contributors") for target in made.before.logits]
    np.testing.assert_allclose(naive.scores, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attacks", [("loss", "lira", "shadow_posterior"), ("shadow_posterior",)])
def test_every_attack_judges_null_models_as_it_judges_the_targets(attacks: tuple[str, ...]) -> None:
    design = SimpleNamespace(plan=SimpleNamespace(audit=SimpleNamespace(attacks=attacks)))
    made = scene()
    null = replace(made.after, logits=drawn(2, 12, 3, seed=8))
    alone = all_judgements(design, made, 0, Attempts())
    found = all_judgements(design, replace(made, null=null), 0, Attempts())
    assert "null" not in alone
    for one, other in zip(found["after"], alone["after"], strict=True):  # what targets get does not depend on them
        assert (one.group, one.attack, one.shadows) == (other.group, other.attack, other.shadows)
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(one.auc, other.auc)
    swapped = all_judgements(design, replace(made, after=null), 0, Attempts())["after"]
    want = {(row.group, row.attack, row.shadows): row for row in swapped if row.group in CONTROL_GROUPS}
    assert {(row.group, row.attack, row.shadows) for row in found["null"]} == set(want)
    assert {row.attack for row in found["null"]} == set(attacks)
    for row in found["null"]:
        np.testing.assert_array_equal(row.scores, want[row.group, row.attack, row.shadows].scores)
        np.testing.assert_array_equal(row.auc, want[row.group, row.attack, row.shadows].auc)


def test_without_an_attack_that_shadows_teach_or_a_rule_there_is_nothing_to_compare() -> None:
    assert knowing_the_rule(scene(), ["loss"], 0) == []
    assert knowing_the_rule(replace(scene(), adaptive=None), ["lira"], 0) == []


def test_an_attack_that_failed_in_one_pool_costs_its_bound_on_epsilon_alone() -> None:
    def row(attack: str) -> dict[str, object]:
        place = {"attack": attack, "shadows": "none", "moment": "after", "share": 1.0}
        return {**place, "pairs": 9, "guesses": 9, "right": 9}

    pools = [{"aucs": [], "guesses": [row(name) for name in names]} for names in (("loss", "rmia"), ("loss",))]
    fitted = {"dp": [[{"delta": 1e-3}]] * 2}
    (found,) = epsilons("base", {"dp": [without(pool, {"rmia"}) for pool in pools]}, fitted, 0.95)
    assert (found.attack, found.right, found.pairs, found.pools) == ("loss", 18, 18, 2) and found.at_least > 0


def test_no_bound_on_epsilon_is_told_of_points_that_come_in_groups() -> None:
    private, removal = SimpleNamespace(method="dp_sgd"), SimpleNamespace(method="remove")
    grouped, single = SimpleNamespace(groups=np.arange(3)), SimpleNamespace(groups=None)
    plan = SimpleNamespace(arms={"none": None, "dp-8": private})
    (line,) = grouped_warnings(plan, grouped)
    assert "no lower bound on ε" in line
    assert grouped_warnings(plan, single) == []
    assert grouped_warnings(SimpleNamespace(arms={"x": removal}), grouped) == []
