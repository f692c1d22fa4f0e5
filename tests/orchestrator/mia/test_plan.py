"""Membership plans: defaults, what is refused in one line, what is warned of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from audits.errors import BadInput
from orchestrator.kinds import load_plan, open_design


def test_the_defaults_are_those_of_the_shipped_plan() -> None:
    plain = load_plan("mia-smoke").like({"audit": {"kind": "mia"}})
    assert plain.resolved() == load_plan("mia-fashion14").resolved()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("audit.attacks=[lyra]", "audit.attacks.0 is \"lyra\" (did you mean 'lira'?)"),
        ("audit.attacks=[loss, loss]", "audit.attacks: 'loss' is listed 2 times"),
        ("audit.fpr=[0.1, 0.1]", "audit.fpr: 0.1 is listed 2 times"),
        ("split.shadows=5", "split.shadows is 5; use an even number"),
        ("split.shadows=2", "split.shadows is 2; attack lira needs 4 or more"),
        ("split.strangers=14", "split.strangers is 14; allowed: up to 12, the shadows of the other pools"),
        ("split.null_models=8", "split.null_models is 8; allowed: up to 6, the targets of the other pools"),
        ("split.canaries=61", "split.canaries is 61; allowed: up to split.train_size (60)"),
        ("audit.hop_skip_jump.points=121", "audit.hop_skip_jump.points is 121; allowed"),
        ("audit.fpr=[0.01]", "audit.fpr 0.01 cannot be resolved by 456 points"),
        ("audit.fpr=[0.05]", "audit.fpr 0.05 cannot be resolved by 160 points"),
        ("model.settings.hiden=[3]", "did you mean 'hidden'"),
        ("shadow_model={name: mlpp}", "shadow_model.name is \"mlpp\" (did you mean 'mlp'?)"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(change: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_plan("mia-smoke", [change])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("split.strangers=0", "split.strangers is 0: promised rates of lira"),
        ("split.null_models=0", "split.null_models is 0: nothing but the targets"),
        ("split.canaries=0", "split.canaries is 0: without a positive control"),
        ("shadow_recipe={epochs: 3}", "shadows are trained unlike the targets"),
        ("audit.attacks=[loss]", "audit.judge rmia is not among audit.attacks: loss takes its place"),
    ],
)
def test_what_weakens_a_result_is_warned_of(change: str, said: str) -> None:
    assert any(said in line for line in load_plan("mia-smoke", [change]).warnings)


def test_models_of_other_pools_saw_no_point_of_the_pool_and_shadows_are_no_judged_models() -> None:
    design: Any = open_design(load_plan("mia-smoke"))
    for pool in range(4):
        points = set(design.drawn.pools[pool])
        for model in (*design.null_models(pool), *design.strangers(pool)):
            assert not points & set(design.drawn.pools[model.pool][model.half])
        names = [
            model.name for model in (*design.models_judged(pool), *design.of(pool, "shadow"), *design.strangers(pool))
        ]
        assert len(set(names)) == len(names) == 2 + 4 + 4 + 6
        assert {model.pool for model in design.strangers(pool)} == set(range(4)) - {pool}
        taught = design.taught(pool)
        right = design.labels(design.drawn.pools[pool])
        assert taught.planted.sum() == 6 and ((taught.labels != right) == taught.planted).all()
        assert not taught.planted[design.boundary_points(pool)].any()
    assert not np.isin(design.drawn.test, design.drawn.pools).any()


def test_more_shadows_or_null_models_retrain_nothing() -> None:
    def trained(*changes: str) -> set[str]:
        return {job.key for job in open_design(load_plan("mia-smoke", changes)).jobs() if job.stage == "train"}

    base = trained()
    assert trained("split.null_models=2", "split.strangers=4", "audit.attacks=[loss]", "audit.fpr=[0.2]") == base
    assert base < trained("split.shadows=6")
    assert not base & trained("split.canaries=8")
    targets = {job.key for job in open_design(load_plan("mia-smoke")).jobs() if "target" in job.member}
    other = trained("shadow_recipe={epochs: 3}")
    assert targets <= other and base & other == targets
