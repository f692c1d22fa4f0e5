"""A membership audit from its plan to its result: what is shared, what is asked again, what is refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from audits.errors import BadInput
from audits.membership import hop_skip_jump
from audits.training.transfer import IMAGENET_INPUT
from orchestrator.console import Terminal
from orchestrator.estimate import estimate
from orchestrator.kinds import audit_kind
from orchestrator.membership.plan import MembershipPlan
from orchestrator.membership.result import control_warnings, fit_warnings, setting_warnings
from orchestrator.membership.stages import stored
from orchestrator.output_folder import claim_folder
from orchestrator.pipeline import Result, run_audit
from orchestrator.plan import load_plan
from orchestrator.plan_checks import check_against_data
from orchestrator.schedule import open_scheduler
from orchestrator.stages import Workshop
from orchestrator.store import Store, pack_table

pytestmark = pytest.mark.slow

SMALL = {
    "compute.workers": 0,
    "split.targets": 4,
    "split.contrast": 12,
    "split.fresh": 2,
    "audit.pool": 12,
    "audit.contrast_samples": 60,
    "audit.reconstruction.models": 2,
    "recipe.epochs": 4,
    "compute.chunk": 8,
}


def small_plan(store: Path, **changes: Any) -> MembershipPlan:
    values = {**SMALL, "compute.store": str(store)} | {
        name.replace("__", "."): value for name, value in changes.items()
    }
    plan = load_plan("tmia-smoke", values=values)
    assert isinstance(plan, MembershipPlan)
    return plan


def run(plan: MembershipPlan, out: Path) -> Result:
    return run_audit(plan, out, Terminal(claim_folder(out, plan, force=True)))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tmia-store")


@pytest.fixture(scope="module")
def finished(store: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    out = tmp_path_factory.mktemp("tmia-run")
    return run(small_plan(store), out), out


@pytest.fixture
def unreported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out page and tracking, which one run of this module has tried."""
    monkeypatch.setattr("orchestrator.pipeline.Run.report", lambda self, document: None)
    monkeypatch.setattr("orchestrator.pipeline.Run.track", lambda self, document: None)


def artefacts(store: Path) -> Counter[str]:
    kept = Store(str(store))
    return Counter({stage: len(kept.keys(stage)) for stage in ("fit", "select", "ask", "judge")})


def test_an_audit_runs_its_mode_and_its_variants(finished: tuple[Result, Path]) -> None:
    result, out = finished
    document = result.document
    assert [(entry["setting"], entry["mode"]) for entry in document["settings"]] == [
        ("I", "I"), ("II", "II"), ("III", "III"),
    ]  # fmt: skip
    assert document["kind"] == "tmia"
    assert {cell["selection"] for cell in document["table"]} == {
        *("all", "none", "kmeans", "contrast_loss", "neighbours")
    }
    for name in ("result.json", "scores.parquet", "report.html", "plan.yaml"):
        assert (out / name).is_file()
    assert json.loads((out / "result.json").read_text())["table"] == document["table"]


def test_labels_are_counted_as_the_schedule_says(finished: tuple[Result, Path]) -> None:
    result, _ = finished
    asked = {
        (cell["setting"], cell["attack"]): cell["queries_per_point"]
        for cell in result.document["table"]
        if cell["selection"] == "none"
    }
    assert {asked[name, "tmia_distance"] for name in ("I", "II", "III")} == {hop_skip_jump.RANK.queries}
    assert asked["I", "noise_votes"] == 8
    assert asked["II", "noise_votes"] == 9  # y* is the model's own label, which is asked first


def test_label_only_attacks_speak_about_the_pool_and_others_about_everybody(finished: tuple[Result, Path]) -> None:
    result, _ = finished
    table = result.scores.to_pydict()
    found: dict[tuple[str, str], set[int]] = {}
    for setting, access, candidate in zip(table["setting"], table["access"], table["candidate"], strict=True):
        found.setdefault((setting, access), set()).add(candidate)
    for name in ("I", "II", "III"):
        assert len(found[name, "labels"]) == 12
        assert len(found[name, "posteriors"]) == 40


@pytest.mark.usefixtures("unreported")
def test_a_second_analysis_asks_nobody_anything(finished: tuple[Result, Path], store: Path, tmp_path: Path) -> None:
    before = artefacts(store)
    plan = small_plan(
        store,
        audit__beta=0.2,
        audit__alpha={"size": 5},
        audit__reconstruction={"map": "isotonic", "points": 10, "models": 2},
    )
    run(plan, tmp_path)
    after = artefacts(store)
    assert after - before == Counter({"judge": 3})


@pytest.mark.usefixtures("unreported")
def test_other_points_of_the_fit_ask_no_candidate_again(
    finished: tuple[Result, Path], store: Path, tmp_path: Path
) -> None:
    before = artefacts(store)
    result = run(small_plan(store, audit__reconstruction={"points": 14, "models": 2}), tmp_path)
    posteriors, pairs = 2, 1  # units of all contrast models, and of the two to whose pairs the map is fitted
    assert artefacts(store) - before == Counter({"judge": 3, "ask": 3 * (posteriors + pairs)})
    assert all(row["pairs"] + row["dropped"] == 14 * 2 for row in result.document["reconstruction"])


@pytest.mark.usefixtures("unreported")
def test_an_attack_that_cannot_speak_is_named_and_the_others_are_judged(
    finished: tuple[Result, Path], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise BadInput("too few pairs")

    monkeypatch.setattr("audits.membership.rank_attacks.fitted_map", refuse)
    plan = small_plan(store, audit__beta=0.25, variants={})
    result = run(plan, tmp_path)
    assert "attack tmia said nothing: too few pairs" in result.document["warnings"]
    spoken = {row["attack"] for row in result.document["table"]}
    assert "tmia" not in spoken
    assert {"tmia_distance", "yeom"} <= spoken
    (line,) = audit_kind("tmia").failed_gates(["precision_low=0.99"], result.document, plan)
    assert "tmia (I), tmia_smoothed (I) said nothing, so it cannot be passed" in line


@pytest.mark.usefixtures("unreported")
def test_the_same_plan_again_does_nothing(finished: tuple[Result, Path], store: Path, tmp_path: Path) -> None:
    before = artefacts(store)
    again = run(small_plan(store), tmp_path)
    assert artefacts(store) == before
    assert pack_table(again.scores) == pack_table(finished[0].scores)


@pytest.mark.usefixtures("unreported")
def test_workers_change_no_bit(finished: tuple[Result, Path], tmp_path: Path) -> None:
    plan = small_plan(tmp_path / "store", compute__workers=2, variants={})
    result = run(plan, tmp_path / "out")
    base = finished[0].scores.filter(np.array(finished[0].scores["setting"].to_pylist()) == "I")
    assert pack_table(result.scores) == pack_table(base)


@pytest.mark.parametrize("mode", ["II", "III"])
def test_no_contrast_or_fresh_model_starts_from_a_teacher_of_a_target(mode: str, store: Path) -> None:
    plan = small_plan(store)
    scheduler: Any = open_scheduler(plan.changed(plan.settings()[mode]))
    teachers: dict[str, set[str]] = {}
    for model in scheduler.models.values():
        if model.teacher:
            teachers.setdefault(model.group, set()).add(model.teacher)
            assert scheduler.models[model.teacher].group == model.group
    assert {group: len(names) for group, names in teachers.items()} == {"target": 4, "contrast": 12, "fresh": 2}


@pytest.mark.parametrize("mode", ["I", "II", "III"])
def test_only_targets_saw_candidates(mode: str, store: Path) -> None:
    plan = small_plan(store)
    scheduler: Any = open_scheduler(plan.changed(plan.settings()[mode]))
    candidates = scheduler.design.candidates
    seen = Counter(
        (model.group, model.side) for model in scheduler.models.values() if np.isin(model.train, candidates).any()
    )
    assert seen == {("target", "own"): 4}


def test_teachers_of_attack_two_are_the_models_of_attack_one(store: Path) -> None:
    plan = small_plan(store, variants={"II": {"audit.mode": "II", "transfer.n_frozen": 1}})
    first, second = (open_scheduler(plan.changed(changes)) for changes in plan.settings().values())
    keys = {job.key for job in first.schedule().train_jobs}
    assert keys < {job.key for job in second.schedule().train_jobs}


def test_the_cost_counts_the_queries_that_are_asked(store: Path) -> None:
    cost = estimate(small_plan(store))
    queries = {entry.attack: entry for entry in cost.queries}
    assert queries["tmia_distance"].per_target == 3 * 12 * hop_skip_jump.RANK.queries
    assert queries["tmia_posterior"].per_target == 3 * 40
    assert queries["label_gap"].per_target == 12  # in mode I alone
    assert {stage.stage for stage in cost.stages} == {"fit", "select", "ask", "judge"}


FROM_FILE = {"audit.mode": "III", "variants": {}, "transfer.teacher": "weights.safetensors"}

REFUSALS = [
    ({"audit.beta": 0.05}, "audit.beta = 0.05 cannot be reached"),
    ({"audit.mode": "IV"}, "audit.mode"),
    ({"audit.kind": "tmai"}, "did you mean 'tmia'"),
    ({"audit.selectors": ["kmean"]}, "did you mean 'kmeans'"),
    ({"audit.attacks": ["tmia", "gmia4"]}, "audit.attacks.1"),
    ({"audit.attacks": ["tmia", "tmia"]}, "stands there 2 times"),
    ({"audit.alpha": {"quantile": 0.9, "size": 3}}, "give exactly one"),
    ({"audit.alpha": {"absolute": 0.5}}, "one number for kmeans and contrast_loss"),
    ({"audit.neighbours.delta": 3.0}, "audit.neighbours.delta"),
    ({"audit.pool": 41}, "up to split.candidates"),
    ({"audit.star": "true", "audit.mode": "II", "variants": {}}, "not the student's"),
    ({"audit.attacks": ["label_gap"], "audit.mode": "II", "variants": {}}, "none is left"),
    ({"transfer.teacher": "weights.safetensors"}, "transfer.teacher is given in mode I"),
    ({**FROM_FILE}, "transfer.teacher_input is missing"),
    ({**FROM_FILE, "transfer.teacher_input": "imagenet"}, "no weights for model.name mlp"),
    ({"transfer.teacher_input": "raw"}, "without transfer.teacher"),
    ({"transfer.n_frozen": 1, "variants": {}}, "mode I, which has no student"),
    ({"variants": {"I": {}}}, "the plan's own setting"),
    ({"variants": {"x": {"seed": -1}}}, "variants.x: seed is -1"),
    ({"variants": {"x": {"compute.chunk": 4}}}, "cannot differ between variants"),
    ({"variants.II.audit.mode": "V"}, "variants.II: audit.mode is"),
    ({"variants": {"x": {"audit": {"mode": "II"}}}}, "write single fields, e.g. audit.mode"),
    ({"split.classes": [0, 77]}, "split.classes has 77"),
    ({"split.classes": [3], "variants": {}}, "leaves one class"),
    ({"split.pool": 1790}, "has 1797"),
    ({"variants": {"II": {"audit.mode": "II", "transfer.n_frozen": 2}}}, "transfer.n_frozen is 2"),
    ({"variants": {"III": {"audit.mode": "III", "transfer.data": {"name": "fashion14"}}}}, "layer"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS, ids=[message for _, message in REFUSALS])
def test_what_cannot_work_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_against_data(load_plan("tmia-smoke", values=changes))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_attack_that_needs_the_true_class_is_left_out_where_there_is_none_and_that_is_said(store: Path) -> None:
    plan = small_plan(store)
    second = plan.changed(plan.settings()["II"])
    assert "label_gap" in plan.audit.attacks
    assert "label_gap" not in second.audit.attacks
    assert any("label_gap was left out in mode II" in note for note in second.notes)


@pytest.mark.usefixtures("unreported")
def test_candidates_are_selected_by_gradient_uniqueness_where_the_training_set_is_in_question(
    finished: tuple[Result, Path], store: Path, tmp_path: Path
) -> None:
    plan = small_plan(store, audit__selectors=["none", "gnq"], audit__attacks=["tmia_posterior"])
    assert any("gnq was left out in mode II" in note for note in plan.changed(plan.settings()["II"]).notes)
    before = artefacts(store)
    result = run(plan, tmp_path)
    assert (artefacts(store) - before)["fit"] == 0
    rows = {(row["setting"], row["selector"]): row for row in result.document["selections"]}
    assert rows.keys() == {("I", "none"), ("I", "gnq"), ("II", "none"), ("III", "none"), ("III", "gnq")}
    for setting in ("I", "III"):
        assert rows[setting, "gnq"]["rule"] == "above the 0.8 quantile of contrast samples"
        assert rows[setting, "gnq"]["threshold"] > 0
        assert 0 < rows[setting, "gnq"]["chosen"] < 40


def test_no_attack_that_ranks_needs_no_reachable_level(store: Path) -> None:
    plan = small_plan(store, audit__beta=0.01, audit__attacks=["yeom"], variants={})
    assert plan.audit.beta == 0.01


def test_warnings_of_some_settings_name_them() -> None:
    found = setting_warnings({"a": ["of all", "of one"], "b": ["of all", "of two"], "c": ["of all", "of two"]})
    assert found == ["of all", "setting a: of one", "settings b, c: of two"]


@pytest.mark.usefixtures("unreported")
def test_a_weakness_that_settings_share_is_told_once(store: Path, tmp_path: Path) -> None:
    result = run(small_plan(store, audit__attacks=["yeom"], split__fresh=0, split__pool=300), tmp_path)
    for text in ("raw ranks of 5 %", "split.fresh is 0"):
        assert len([line for line in result.document["warnings"] if text in line]) == 1, text


def test_teachers_that_are_over_fitted_are_warned_of_where_they_are_in_question() -> None:
    row = {"setting": "II", "side": "teacher", "group": "target", "train_accuracy": 0.9, "test_accuracy": 0.8}
    rows = [{**row, "flag": "overfitted"}, {**row, "setting": "III", "flag": "overfitted"}]
    (line,) = fit_warnings(rows, ["II"])
    assert line.startswith("setting II: teachers of the targets are over-fitted (train 0.900, test 0.800)")


def test_models_of_the_other_side_are_tested_on_points_of_all_classes(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.membership.layout.TEST_POINTS", 60)
    plan = small_plan(store)
    layout: Any = open_scheduler(plan.changed(plan.settings()["II"]))
    order = np.argsort(layout.other.labels, kind="stable")
    monkeypatch.setattr(layout, "points", lambda side: np.arange(len(order)))
    labels = layout.other.labels[order]  # as in sets whose ids stand class by class
    tests = [model.test for model in layout.other_models([])]
    assert all(
        len(set(labels[test])) == 10 and not len(np.intersect1d(test, model.train))
        for test, model in zip(tests, layout.other_models([]), strict=True)
    )


def test_students_of_a_file_start_from_it_and_read_what_it_was_trained_on(
    finished: tuple[Result, Path], store: Path, tmp_path: Path
) -> None:
    weights = tmp_path / "weights.safetensors"
    teacher = load_plan("tmia-smoke").model.architecture().build((1, 8, 8), 7, 0).state_dict()
    save_file(teacher, weights)
    plan = small_plan(
        store,
        audit__mode="III",
        audit__attacks=["yeom"],
        variants={},
        transfer={"teacher": str(weights), "teacher_input": "raw", "n_frozen": 1},
    )
    run(plan, tmp_path / "out")
    scheduler: Any = open_scheduler(plan)
    student = stored(Workshop(scheduler, Store(str(store))), scheduler.asked("target")[0])
    first = next(iter(teacher))
    assert torch.equal(student.state_dict()[first], teacher[first])
    other = plan.model_copy(update={"transfer": plan.transfer.model_copy(update={"teacher_input": "imagenet"})})
    standardised: Any = open_scheduler(other)
    assert standardised.schedule().train_jobs[0].key != scheduler.schedule().train_jobs[0].key
    with pytest.raises(BadInput, match="weights read 3 channels, but images are 1×8×8"):
        standardised.build("own", 10, 0)


def test_models_read_what_torchvisions_weights_were_trained_on(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = small_plan(store, model={"name": "vgg16", "settings": {"width": 2}})
    other = plan.model_copy(update={"transfer": plan.transfer.model_copy(update={"teacher_input": "imagenet"})})
    plain: Any = open_scheduler(plan)
    asked: Any = open_scheduler(other)
    colours = SimpleNamespace(shape=(3, 32, 32))
    for scheduler in (plain, asked):
        monkeypatch.setattr(scheduler, "data_of_side", lambda side: colours)
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor(part).reshape(3, 1, 1) for part in IMAGENET_INPUT)
    expected = plain.build("own", 10, 0).eval()((x - mean) / std)
    assert torch.equal(asked.build("own", 10, 0).eval()(x), expected)


def test_scores_on_disk_hold_every_contrast_models_statistic(finished: tuple[Result, Path]) -> None:
    _, out = finished
    table = pq.read_table(out / "scores.parquet", filters=[("attack", "=", "tmia_distance"), ("setting", "=", "I")])
    assert Counter(table["group"].to_pylist()) == {"target": 48, "contrast": 144, "fresh": 24}


def test_models_beyond_the_memory_allowed_are_read_again(
    finished: tuple[Result, Path], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_plan(store)
    scheduler: Any = open_scheduler(plan.changed(plan.settings()["I"]))
    shop = Workshop(scheduler, Store(str(store)))
    first, second = scheduler.asked("target")[:2]
    kept = stored(shop, first)
    assert stored(shop, first) is kept
    monkeypatch.setattr("orchestrator.stages.workshop.BYTES_IN_MEMORY", 1)
    stored(shop, second)
    assert len(shop.models) == 1
    assert stored(shop, first) is not kept


def test_the_gate_stops_a_release(finished: tuple[Result, Path], capsys: pytest.CaptureFixture[str]) -> None:
    result, _ = finished
    kind = audit_kind("tmia")
    plan = load_plan("tmia-smoke", values=SMALL)
    kind.refuse_gates(["precision=0.5", "II.kmeans.tmia.fresh_fpr=0.9"], plan)
    for text, message in (
        ("precision", "write it as METRIC=VALUE"),
        ("precison=0.5", "did you mean 'precision'"),
        ("precision=1.5", "from 0 up to"),
        ("IV.kmeans.tmia.precision=0.5", "setting 'IV'"),
        ("I.kmean.tmia.precision=0.5", "selection 'kmean'"),
    ):
        with pytest.raises(BadInput, match=re.escape(message)):
            kind.refuse_gates([text], plan)
    cells = [{**cell, "precision": 0.8} for cell in result.document["table"]]
    (line,) = kind.failed_gates(["precision=0.7"], {"table": cells}, plan)
    assert line.startswith("gate precision=0.7: precision is 0.800")
    assert kind.failed_gates(["precision=0.9"], {"table": cells}, plan) == []
    undefined = [{**cell, "precision": None} for cell in cells]
    assert kind.failed_gates(["precision=0.1"], {"table": undefined}, plan) == []
    (line,) = kind.failed_gates(["I.kmeans.tmia.precision=0.1"], {"table": undefined}, plan)
    assert "was not measured" in line


def test_false_calls_on_fresh_models_are_warned_of_setting_by_setting() -> None:
    cell = {"attack": "tmia", "selection": "none", "beta": 0.05, "expected_false_positives": 10.0, "fresh_fpr": 0.09}
    low = {"fresh_fpr_low": 0.02}
    cells: list[dict[str, Any]] = [
        {**cell, "setting": "I", **low},
        {**cell, "setting": "II", "fresh_fpr_low": 0.06},
        {**cell, "setting": "II", **low},
        {**cell, "setting": "II", "expected_false_positives": None, "fresh_fpr_low": 0.9},
        {**cell, "setting": "III", "attained": 0.04, "fresh_fpr_low": 0.045},  # below what is promised
    ]
    (line,) = control_warnings(cells, 0.95)
    assert line.startswith("setting II: fresh models are called members more often than 5.0% in 1 of 2 cells")
    assert "tmia on none 9.0%" in line
