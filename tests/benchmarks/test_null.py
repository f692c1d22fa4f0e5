"""The null experiment: nobody who is asked about was trained on, and what does not hold is said."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from benchmarks import null
from benchmarks.null_audits import Untracked
from benchmarks.null_checks import Check, Found, rate
from benchmarks.null_kinds import APOLLO, GNQ, MIA, TMIA
from orchestrator.engine.data import data_of
from orchestrator.engine.run.run import Run
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.store import Store
from orchestrator.gnq.stages import defending
from orchestrator.kinds import load_plan


def laid_out(kind, **changes):
    plan = load_plan(f"{kind.name}-smoke", values=changes)
    return kind.lay_out(plan, data_of(plan.data.name, plan.data.root), "cpu")


def test_a_run_without_page_and_tracking_is_called_as_any_run_is():
    for name in ("report", "watch", "track"):
        own, every = (inspect.signature(getattr(kind, name)).parameters for kind in (Untracked, Run))
        assert [*own] == [*every]


def test_no_target_of_apollo_was_trained_on_what_it_is_asked_about_but_for_identity():
    design = laid_out(APOLLO)
    members = {design.trained(member).key: member for member in design.targets}
    for place, asked in enumerate(design.partition.candidates):
        for target in design.targets_of(place):
            own = asked.ids[asked.target == target.index]
            for entry in design.plan.unlearning:
                model = design.unlearned(target, entry)
                if entry.method != "identity":
                    origin = next(job for job in design.jobs() if job.stage == "unlearn" and job.key == model.key)
                    trained = members[origin.needs[0]].train
                    assert not np.isin(own, trained).any()
                else:
                    assert np.isin(own, members[model.key].train).any()


def test_no_target_of_tmia_was_trained_on_a_candidate():
    design = laid_out(TMIA)
    sets = design.sets
    assert sets.membership.any(axis=0).all()
    assert not np.isin(sets.target, sets.candidates).any()
    assert np.isin(sets.target, sets.filler).all()
    assert all(not np.isin(model.train, sets.candidates).any() for model in design.models_of("target"))


def test_targets_of_gnq_are_trained_on_another_pool_before_and_behind_defences():
    design = laid_out(GNQ, **{"split.pools": 4})
    for model in design.models.values():
        own = np.isin(design.source(model), design.points_by_name(model)["own"])
        assert own.all() if model.group == "shadow" else not own.any()
        assert np.array_equal(design.points(model), design.source(model)[model.half])
    for pool in range(4):
        for model in design.null_models(pool):
            assert not np.isin(design.source(model), design.drawn.pools[pool]).any()


def test_a_defended_target_of_gnq_is_trained_on_the_exchanged_points(tmp_path, monkeypatch):
    design = laid_out(GNQ, **{"split.pools": 4})
    job = next(job for job in design.jobs() if job.stage == "defend" and job.label.startswith("dp-"))
    model, seen = design.models[job.member], []

    def refuse(*_, **__):
        raise FloatingPointError("seen enough")

    monkeypatch.setattr(defending, "tensors", lambda _, ids: seen.append(ids))
    monkeypatch.setattr(defending, "fit", refuse)
    defending.defend(WorkerContext(GNQ, design, Store(tmp_path)), job)
    assert model.group == "target" and np.array_equal(seen[0], design.points(model))
    assert not np.isin(seen[0], design.drawn.pools[model.pool]).any()


def test_no_judged_model_of_mia_was_trained_on_a_point_that_it_is_asked_about():
    design = laid_out(MIA, **{"split.canaries": 0, "split.null_models": 2})
    for pool in range(4):
        asked = design.drawn.pools[pool]
        judged = design.models_judged(pool)
        assert [model.pool == pool for model in judged] == [True, True, False, False]
        for model in judged:
            trained = design.models[model.name]
            points = design.drawn.pools[trained.pool][trained.half]
            assert not np.isin(points, asked).any()
            assert design.train_job(model).document["pool"] == design.about(trained.pool)["pool"]
        for model in design.of(pool, "shadow"):
            assert np.isin(design.drawn.pools[model.pool][model.half], asked).all()


def check(value: float, low: float, high: float, promised: float, p: float) -> Check:
    return Check("AUC", "somewhere", value, low, high, promised, p)


def test_what_stays_off_after_holm_is_broken_and_what_luck_does_is_not():
    off = check(0.6, 0.55, 0.65, 0.5, 0.001)
    luck = check(0.52, 0.505, 0.535, 0.5, 0.03)
    fair = check(0.51, 0.49, 0.53, 0.5, 0.3)
    assert null.verdict(Found((luck, fair), (), "")) == ["1 of 2 intervals miss; luck alone: 0 or fewer."]
    lines = null.verdict(Found((off, luck, fair), ("3 points are exposed",), ""))
    assert lines[0].startswith("2 of 3 intervals miss")
    assert [line.split(":")[0] for line in lines[1:]] == ["BROKEN", "BROKEN"]
    assert "0.600 [0.550, 0.650] where 0.5 is promised" in lines[1]


def test_a_rate_below_its_promise_is_no_miss():
    row = {"attack": "lira", "found_fpr": 0.02, "found_fpr_low": 0.01, "found_fpr_high": 0.03, "setting": "base"}
    found = rate(row, "found_fpr", "rate", 0.05, 8)
    assert found.low <= found.promised <= found.high
    assert found.p == 1.0
    higher = {"found_fpr": 0.09, "found_fpr_low": 0.07, "found_fpr_high": 0.12}
    assert rate({**row, **higher}, "found_fpr", "rate", 0.05, 8).p < 0.01


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lira"], "no audit 'lira'; allowed: apollo, tmia, gnq, mia"),
        (["gnq", "--quick", "--workers", "some"], 'compute.workers is "some"; allowed'),
        (["gnq", "--quick", "--seed", "-3"], "seed is -3; allowed"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, says, capsys):
    with pytest.raises(SystemExit) as stopped:
        null.main(arguments)
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err
