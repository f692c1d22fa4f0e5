"""Every shipped sweep: its plans are valid, its population is shared, its space is Ray Tune's."""

from __future__ import annotations

import pytest

from orchestrator.plan import load_plan
from orchestrator.schedule import schedule
from tune_spaces import SWEEPS


@pytest.mark.parametrize("name", list(SWEEPS))
def test_every_setting_of_a_shipped_sweep_is_a_valid_plan(name):
    sweep = SWEEPS[name]
    plan = load_plan(sweep.base)
    hashes = {setting: plan.changed(changes).plan_hash for setting, changes in sweep.settings.items()}
    assert len(set(hashes.values())) == len(hashes), "two settings are the same plan"


@pytest.mark.parametrize("name", list(SWEEPS))
def test_the_space_is_a_grid_over_the_settings(name):
    sweep = SWEEPS[name]
    assert sweep.space() == {"setting": {"grid_search": list(sweep.settings)}}
    assert sweep.space(["x"]) == {"setting": {"grid_search": ["x"]}}


def test_the_ablation_shares_one_population_and_varies_what_the_paper_varies():
    sweep = SWEEPS["apollo-ablation"]
    plan = load_plan(sweep.base, ("split.targets=4", "split.candidates={forget: 50, unseen: 50}", "audit.fpr=[0.05]"))
    population = [job.key for job in schedule(plan).models]
    fields = set()
    for changes in sweep.settings.values():
        assert [job.key for job in schedule(plan.changed(changes)).models] == population
        fields |= set(changes)
    assert fields == {f"audit.search.{name}" for name in ("beta", "shadows", "epsilon", "steps")}


def test_steps_vary_at_the_final_radius_of_the_base():
    sweep = SWEEPS["apollo-ablation"]
    base = load_plan(sweep.base).audit.search
    for name, changes in sweep.settings.items():
        if name.startswith("T="):
            width, steps = changes["audit.search.epsilon"], changes["audit.search.steps"]
            assert width * steps == pytest.approx(base.epsilon * base.steps)


def test_the_seeds_are_the_five_fixed_beforehand():
    assert [changes["seed"] for changes in SWEEPS["apollo-seeds"].settings.values()] == [0, 1, 2, 3, 4]
