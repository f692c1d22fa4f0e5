"""Plans whose models several workers make: what is refused, which keys name it, what stays as it was for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audits.errors import BadInput
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.workers import engine_of, hire
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan
from tests.cases.runs import jobs_of
from tests.cases.smallest_plans import smallest_plan

PRIVATE = {"noise_multiplier": 1.0, "max_grad_norm": 1.0}


def plan(kind: str = "mia", size: int = 2, **compute: Any) -> BasePlan:
    values = {"workers": 2, "workers_per_model": size, **compute}
    return smallest_plan(kind, Path("/nowhere"), **{f"compute.{name}": value for name, value in values.items()})


def refused(kind: str, values: dict[str, Any], **compute: Any) -> str:
    compute = {"workers": 2, "workers_per_model": 2, **compute}
    with pytest.raises(BadInput) as found:
        load_plan(f"{kind}-smoke", values=values | {f"compute.{name}": value for name, value in compute.items()})
    return str(found.value)


@pytest.mark.parametrize(
    ("compute", "line"),
    [
        (
            {"workers": 3},
            "compute.workers_per_model is 2, which does not divide compute.workers (3); give 2 or 4 workers",
        ),
        ({"workers": 1}, "compute.workers_per_model is 2, which does not divide compute.workers (1); give 2 workers"),
        (
            {"workers": 0},
            "compute.workers_per_model is 2, but compute.workers is 0, the calling process alone; give 2, a multiple "
            "of it, or auto",
        ),
        (
            {"engine": "actors"},
            "compute.workers_per_model is 2, but compute.engine is actors, which train for themselves; give train, or "
            "leave it out",
        ),
        (
            {"gpus_per_worker": 0.5},
            "compute.workers_per_model is 2, whose workers need a GPU each, but compute.gpus_per_worker is 0.5; give "
            "1, or auto",
        ),
        ({"workers_per_model": 0}, "compute.workers_per_model is 0; allowed: 1 or more"),
        (
            {"workers_per_model": 1, "sync_batch_norm": False},
            "compute.sync_batch_norm is false, which only compute.workers_per_model above 1 reads; leave it out",
        ),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_in_one_line(compute: dict[str, Any], line: str) -> None:
    assert refused("mia", {}, **compute) == line


def test_a_misspelt_field_is_told_its_name() -> None:
    assert "did you mean 'workers_per_model'?" in refused("mia", {"compute.worker_per_model": 2})


def test_recipes_that_one_worker_trains_by_itself_are_refused() -> None:
    for kind in ("apollo", "tmia", "mia"):
        line = refused(kind, {f"recipe.{name}": value for name, value in PRIVATE.items()})
        assert "compute.workers_per_model is 2, but recipe is private (DP-SGD), which one worker trains" in line, kind
    line = refused("gnq", {"defences": [{"method": "dp_sgd", "recipe": {**PRIVATE, "epochs": 1}}]})
    assert line.startswith("compute.workers_per_model is 2, but defences.0.recipe is private")
    line = refused("apollo", {"shadow_recipe": {**PRIVATE, "epochs": 1}})
    assert line.startswith("compute.workers_per_model is 2, but shadow_recipe is private")


@pytest.mark.parametrize("name", ["apollo", "tmia", "gnq, looks apart", "mia"])
def test_keys_name_the_workers_of_a_model_where_there_are_several(name: str) -> None:
    alone, pair, apart = (
        jobs_of(each) for each in (plan(name, 1), plan(name), plan(name, workers=4, sync_batch_norm=False))
    )
    makes = {stage.name: stage.makes for stage in kind_named(name.partition(",")[0]).stages}
    for one, two, three in zip(alone, pair, apart, strict=True):
        named = {} if makes[one.stage] != "model" else {"workers_per_model": 2, "sync_batch_norm": True}
        assert two.document["platform"] == one.document["platform"] | named
        assert not {"workers_per_model", "sync_batch_norm"} & one.document["platform"].keys()
        if named:
            assert len({one.key, two.key, three.key}) == 3


def test_a_plan_for_one_worker_a_model_decides_what_it_did() -> None:
    alone = plan(size=1)
    assert not {"workers_per_model", "sync_batch_norm"} & alone.deciding()["compute"].keys()
    assert len({each.plan_hash for each in (alone, plan(), plan(workers=4), plan(sync_batch_norm=False))}) == 3


def test_workers_are_hired_in_teams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hired(most: int, size: int, **compute: Any) -> int:
        monkeypatch.setattr("actors.cluster.usable_cpus", lambda: most)
        return hire(plan(size=size, **compute), Store(str(tmp_path)), None, lambda *_: True)[2].count  # type: ignore[arg-type]  # no terminal: nothing is said

    assert [hired(most, 2, workers="auto") for most in (2, 3, 5)] == [2, 2, 4]
    assert hired(1, 2, workers=4) == 4
    with pytest.raises(BadInput, match=r"compute.workers_per_model is 4, but fewer workers with 1 CPU fit on this"):
        hired(3, 4, workers="auto")


def test_on_a_cluster_they_are_one_group_of_a_given_size(tmp_path: Path) -> None:
    assert engine_of(plan(workers=2, address="auto")) == "train"
    with pytest.raises(
        BadInput, match=r"workers_per_model is 2 and compute.workers auto; on a cluster give the number"
    ):
        hire(plan(workers="auto", address="auto"), Store(str(tmp_path)), None, lambda *_: True)  # type: ignore[arg-type]  # no terminal: nothing is said
