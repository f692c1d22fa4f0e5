"""Plans of GNQ: defences that choose nobody, arms of one ε, rankings of a mode, and what is warned of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from audits.errors import BadInput
from audits.gnq.kept import kept_points
from audits.uniqueness.rankings import RANKINGS
from orchestrator.gnq.plan import READS_MODE, GnqPlan
from orchestrator.gnq.result.predictions import CONTROLS
from orchestrator.gnq.result.words import arm_words
from orchestrator.kinds import load_plan, open_design
from orchestrator.report.words import RANKINGS as WORDS

PRIVATE = "{method: dp_sgd, recipe: {target_epsilon: 8.0, max_grad_norm: 1.0, batch_size: 20%s}}"


def plan_of(*overrides: str) -> GnqPlan:
    plan = load_plan("gnq-smoke", overrides)
    assert isinstance(plan, GnqPlan)
    return plan


@pytest.mark.parametrize("method", ["remove", "noise"])
@pytest.mark.parametrize(("share", "chosen"), [(0.008, 0), (0.0083, 0), (0.0084, 1), (0.991, 59), (0.995, 60)])
def test_a_share_chooses_a_point_but_not_all(method: str, share: float, chosen: int) -> None:
    strength = ", strength: 1.0" if method == "noise" else ""
    change = f"defences=[{{method: {method}, ranking: random, share: {share}{strength}}}]"
    assert round(share * 60) == chosen
    if 0 < chosen < 60:
        kept = kept_points(np.ones((1, 60), bool), np.zeros((1, 60)), share)
        assert (~kept).sum() == chosen
        plan_of(change)
        return
    with pytest.raises(
        BadInput, match=rf"defences\.0\.share is {share}, which is {chosen} of split\.train_size 60"
    ) as caught:
        plan_of(change)
    assert "\n" not in str(caught.value)


def test_arms_of_one_epsilon_are_told_apart_by_what_differs() -> None:
    def arms(*recipes: str) -> list[str]:
        return list(plan_of(f"defences=[{', '.join(PRIVATE % recipe for recipe in recipes)}]").arms)

    assert arms("") == ["none", "dp-8"]
    assert arms("", ", private_engine: opacus") == ["none", "dp-8-fast", "dp-8-opacus"]
    assert arms(", epochs: 5", ", epochs: 6", ", epochs: 6, private_engine: opacus") == [
        "none",
        "dp-8-epochs-5-fast",
        "dp-8-epochs-6-fast",
        "dp-8-epochs-6-opacus",
    ]
    with pytest.raises(BadInput, match="defences: 'dp-8' is listed 2 times; once is enough"):
        arms("", "")


@pytest.mark.parametrize(
    ("name", "spent", "words"),
    [
        ("dp-8", 7.96, "DP-SGD, ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}7.96"),
        ("dp-8-opacus", 7.96, "DP-SGD, ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}7.96 (opacus)"),
        ("dp-noise-1.5", None, "DP-SGD"),
        ("dp-noise-1e-05-batch_size-20", None, "DP-SGD (batch size-20)"),
    ],
)
def test_words_of_private_arms_tell_what_differs(name: str, spent: float | None, words: str) -> None:
    arm: Any = SimpleNamespace(arm=name, method="dp_sgd", share=None, ranking=None, epsilon=spent)
    assert arm_words(arm) == words


def test_more_models_than_shadows_can_give_are_warned_of() -> None:
    def warned(*overrides: str) -> list[str]:
        return [line for line in plan_of(*overrides).warnings if "audit.onion" in line]

    assert warned("audit.onion=4") == []
    (line,) = warned("audit.onion=5")
    assert line.startswith("audit.onion is 5, but of 8 shadows each point is in 4: there will be no table of fully exp")
    assert warned("audit.onion=5", "defences=[]") == []


def test_rankings_of_a_mode_need_it_and_all_have_words() -> None:
    assert set(WORDS) == set(RANKINGS)
    assert set(CONTROLS) == set(RANKINGS) - set(READS_MODE) - {"random"}
    for name in ("pinv_log", "pinv_sum"):
        change = f"defences=[{{method: remove, ranking: {name}, share: 0.1}}]"
        with pytest.raises(BadInput, match=f"ranking is {name}, which reads mode pinv; add it to audit.modes"):
            plan_of(change)
        assert f"{name}-0.1" in plan_of(change, "audit.modes=[ridge, pinv]").arms


def test_an_arm_that_is_named_otherwise_is_judged_anew() -> None:
    one, two = (
        plan_of(f"defences=[{', '.join(PRIVATE % recipe for recipe in recipes)}]")
        for recipes in ((", epochs: 5",), (", epochs: 5", ", epochs: 6"))
    )
    alone: Any = open_design(one)
    beside: Any = open_design(two)
    model = alone.models["0-target-0"]
    assert alone.defend_job(model, "dp-8").key == beside.defend_job(model, "dp-8-epochs-5").key
    assert alone.score_job(0, "dp-8").key != beside.score_job(0, "dp-8-epochs-5").key


def test_the_former_name_of_a_field_is_refused_with_the_new_one() -> None:
    with pytest.raises(BadInput, match=r"split.seeds is now called split.pools; change the plan"):
        plan_of("split.seeds=3")
