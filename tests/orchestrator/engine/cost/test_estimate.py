"""``orch cost``: the estimate of one plan."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from PIL import Image

from audits.data import images
from audits.training.recipe import Recipe
from orchestrator.apollo.cost import ApolloProbe
from orchestrator.cli.main import main
from orchestrator.engine.cost import decoding, timing
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.cost.timing import time_steps, timeable
from orchestrator.engine.store.store import Store
from orchestrator.engine.timings import Timings
from orchestrator.kinds import kind_named, load_plan
from tests.cases.runs import jobs_of

APOLLO = kind_named("apollo")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder with no store named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)


def test_an_estimate_counts_what_is_missing_and_what_the_store_has(capsys: pytest.CaptureFixture[str]) -> None:
    plan = load_plan("apollo-smoke")
    store = Store("store")
    for job in jobs_of(plan, "train")[:5]:
        store.put("train", job.key, job.document, {"m.json": b"{}"}, seconds=7.0)
    assert main(["cost", "apollo-smoke", "--store", "store", "--workers", "2", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    train, unlearn = cost["stages"][:2]
    models = 3 + 3 * (8 + 2)
    assert (train["needed"], train["reused"], train["missing"]) == (models, 5, models - 5)
    assert (train["unit_seconds"], train["basis"]) == (7.0, "the store")
    assert (unlearn["needed"], unlearn["reused"], unlearn["basis"]) == (2 * models, 0, "a probe")
    queries = {entry["attack"]: entry["per_target"] for entry in cost["queries"]}
    assert (queries["label_gap"], queries["apollo"]) == (40, 40 * 9)
    assert cost["gpu_hours"] is None
    assert main(["cost", "apollo-smoke", "--store", "store"]) == 0
    shown = capsys.readouterr().out
    assert "probe" in shown and " ───" in shown and not set("┏━┃│") & set(shown)
    assert not Path(".orch").exists()


def test_time_is_not_taken_from_models_of_another_kind(capsys: pytest.CaptureFixture[str]) -> None:
    other = load_plan("apollo-smoke", ["recipe.epochs=99"])
    store = Store("store")
    for job in (jobs_of(other, "train")[0], jobs_of(other, "search")[0]):
        store.put(job.stage, job.key, job.document, {"m.json": b"{}"}, seconds=1e6)
    assert main(["cost", "apollo-smoke", "--store", "store", "--json"]) == 0
    stages = {stage["stage"]: stage for stage in json.loads(capsys.readouterr().out)["stages"]}
    assert stages["train"]["basis"] == stages["search"]["basis"] == "a probe"
    assert stages["train"]["unit_seconds"] < 1e5


def test_a_finished_population_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    store = Store("store")
    for job in jobs_of(load_plan("apollo-smoke", ["split.targets=1", "audit.fpr=[0.5]"])):
        store.put(job.stage, job.key, job.document, {"m.json": b"{}"}, seconds=1.0)
    one = ["--set", "split.targets=1", "--set", "audit.fpr=[0.5]"]
    assert main(["cost", "apollo-smoke", *one, "--store", "store", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert (cost["seconds"], cost["bytes"]) == (0.0, 0)
    assert all(stage["missing"] == 0 for stage in cost["stages"])


def test_a_plan_is_costed_without_its_data_when_their_size_is_known() -> None:
    plan = load_plan(
        "apollo-cifar10",
        (
            "split={targets: 1, train_size: 40, target_pool: 80, shadow_pool: 320, test_pool: 100, shadows: 4}",
            "split.offline_shadows=2",
            "split.forget=0.4",
            "split.candidates={forget: 4, unseen: 20}",
            "model.settings={width: 2}",
            "audit.fpr=[0.5]",
        ),
    )
    cost = estimate(APOLLO, plan)
    assert not cost.data_present and not cost.to_json()["data_present"]
    assert {stage.stage: stage.needed for stage in cost.stages}["train"] == 1 + 4 + 2
    assert cost.seconds > 0


@pytest.mark.long
def test_imagenet_is_priced_without_its_images_by_a_throughput_that_somebody_states(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In short: the tests beside it, of data whose size is known and of a stated throughput."""
    small = (
        "split.targets=2", "split.shadows=4", "split.offline_shadows=2", "audit.fpr=[0.5]",
        "split.candidates={forget: 40, unseen: 40}",
    )  # fmt: skip
    few = [word for change in small for word in ("--set", change)]
    asked = ["cost", "apollo-imagenet", *few, "--images-per-second", "2000", "--workers", "8"]
    assert main([*asked, "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    train = cost["stages"][0]
    assert (train["stage"], train["needed"], train["basis"]) == ("train", 2 + 2 * (4 + 2), "as stated")
    steps = 100 * math.ceil(128_116 / 64)
    assert train["unit_seconds"] == pytest.approx(steps * 64 / 2000)
    assert train["unit_bytes"] == pytest.approx(46.8e6, rel=0.01)  # ResNet-18 in float32
    assert cost["workers"] == 8 and not cost["data_present"]
    assert main(["cost", "apollo-imagenet", "--images-per-second", "0"]) == 2


def test_workers_of_one_model_share_its_work(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["cost", "apollo-smoke", "--images-per-second", "2000", "--json"]
    found = []
    for words in (["--workers", "8"], ["--workers", "8", "--set", "compute.workers_per_model=4"]):
        assert main([*asked, *words]) == 0
        found.append(json.loads(capsys.readouterr().out))
    one, four = found
    assert (one["workers_per_model"], four["workers_per_model"]) == (1, 4)
    assert four["seconds"] == one["seconds"] and four["stages"] == one["stages"]
    assert main([*asked[:-1], "--set", "compute.workers_per_model=4"]) == 0
    said = capsys.readouterr().out
    assert "with 4 workers, 4 to a model, " in said
    assert "on 2 000 images a second" in said and "worker-hours in all" in said


def test_a_stated_throughput_is_not_mixed_with_what_the_store_knows(capsys: pytest.CaptureFixture[str]) -> None:
    store = Store("store")
    job = jobs_of(load_plan("apollo-smoke"), "train")[0]
    store.put("train", job.key, job.document, {"m.json": b"{}"}, seconds=1e6)
    assert main(["cost", "apollo-smoke", "--store", "store", "--images-per-second", "1000", "--json"]) == 0
    train = json.loads(capsys.readouterr().out)["stages"][0]
    assert train["reused"] == 1 and train["unit_seconds"] < 1e3


@pytest.mark.parametrize("rate", ["nan", "inf"])
def test_a_throughput_is_a_number(rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "apollo-smoke", "--images-per-second", rate]) == 2
    assert capsys.readouterr().err.strip() == (
        f"orch: --images-per-second is {rate}; give a number of images, e.g. 2500"
    )


def test_unlearning_is_priced_by_the_points_that_a_method_walks_in_batches_of_its_own() -> None:
    """At a stated throughput seconds are images over it: 100 points a model, 20 of them forgotten."""
    method = "learning_rate: 1e-3, epochs: 3, batch_size"
    plan = load_plan(
        "apollo-smoke",
        [
            f"unlearning=[{{method: finetune, {method}: 10}}, {{method: gradient_ascent, {method}: 5}},"
            f" {{method: finetune, as: as-recipe, {method}: 50}}]",
            "recipe.batch_size=50",
        ],
    )
    guess = ApolloProbe(plan, "cpu", Timings(10.0))
    found = {job.label: guess.seconds(job) for job in jobs_of(plan, "unlearn")}
    assert found["finetune"] == found["as-recipe"] == pytest.approx(3 * 100 / 10)
    assert found["gradient_ascent"] == pytest.approx(3 * 20 / 10)


def test_a_rate_at_which_training_diverges_can_be_priced() -> None:
    cost = estimate(APOLLO, load_plan("apollo-smoke", ["recipe.learning_rate=1e30"]))
    assert cost.seconds > 0


def test_a_probe_knows_steps_of_dp_sgd_whatever_their_budget() -> None:
    recipes = [
        timeable(Recipe(epochs=3, target_epsilon=budget, max_grad_norm=1.0), points=20) for budget in (1e-9, 8.0)
    ]
    assert recipes[0] == recipes[1]
    assert recipes[0].private and recipes[0].batch_size == 20
    plan = load_plan("apollo-smoke", ["recipe.target_epsilon=8.0", "recipe.max_grad_norm=1.0"])
    seconds, size = time_steps(plan, plan.model, timeable(plan.recipe, plan.split.train_size), "cpu")
    assert seconds > 0 and size > 0


def test_images_are_decoded_once_a_job_or_in_every_epoch_and_a_stated_throughput_includes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "time_steps", lambda *_: (1.0, 1000))
    monkeypatch.setattr(timing, "image_seconds", lambda plan: 100.0)
    monkeypatch.setattr(timing, "JOB_SECONDS", 0.0)

    def price(*changes: str, stated: float | None = None) -> dict[str, float]:
        plan = load_plan("apollo-smoke", ["split.targets=1", "audit.fpr=[0.5]", *changes])
        guess = ApolloProbe(plan, "cpu", Timings(stated))
        return {stage: guess.seconds(jobs_of(plan, stage)[-1]) for stage in ("train", "unlearn", "utility", "search")}

    found = price("recipe.epochs=3")
    assert found["train"] == 100 * 100.0 + 3 * 4 and found["unlearn"] == 100 * 100.0 + 3 * 4  # retrain
    assert found["utility"] > (100 + 200) * 100.0 and found["search"] > 20 * 100.0
    assert price(stated=32.0)["train"] == 10 * 4  # steps of 32 points
    monkeypatch.setattr(timing, "too_large", lambda *_: True)
    assert price("recipe.epochs=3")["train"] == 3 * 100 * 100.0 + 3 * 4


def test_decoding_is_timed_on_the_images_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MOST_BYTES", 0)
    for number in range(8):
        folder = tmp_path / "images" / f"c{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 40), (number, 0, 0)).save(folder / f"{number}.png")
    name = f"folder:{tmp_path / 'images'}?size=32"
    assert decoding.image_seconds(load_plan("apollo-smoke", [f"data.name={name}"])) > 0
    assert decoding.image_seconds(load_plan("apollo-smoke")) == 0, "digits are in memory"
