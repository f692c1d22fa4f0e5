"""A TMIA audit from its plan to its result: what is shared, what is asked again, what is refused."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from audits.errors import BadInput
from audits.queries import hop_skip_jump
from audits.training.transfer import IMAGENET_INPUT
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.jobs.job import of_stage
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.recent import Recent
from orchestrator.engine.run.run import Result
from orchestrator.engine.run.worker import OpenContexts, WorkerContext
from orchestrator.engine.store.store import Store
from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import check_against_data, load_plan, open_design
from orchestrator.tmia.kind import KIND
from orchestrator.tmia.plan import TmiaPlan
from orchestrator.tmia.result.controls import judged_cells
from orchestrator.tmia.result.document import fit_warnings, setting_warnings
from orchestrator.tmia.result.judging import judge
from orchestrator.tmia.result.rows import FitRow, TmiaCell
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.stages.querying import stored
from orchestrator.tmia.stages.stars import filled
from tests.cases import kept
from tests.cases.reopened import result_of, store_of
from tests.cases.runs import audited, numbers_compared
from tests.cases.smallest_plans import smallest_plan

pytestmark = pytest.mark.slow

TARGETS = 2
GROUPS = {"target": TARGETS, "reference": 12, "null": 1, "overfitted": TARGETS}
FEW = ["label_gap", "noise_votes", "tmia_distance", "tmia_posterior"]
MODES = {
    "II": {"audit.mode": "II", "split.classes": "even", "transfer.classes": "odd", "transfer.n_frozen": 1},
    "III": {"audit.mode": "III", "split.classes": "odd", "transfer.classes": "even"},
}
KEPT = {"null_fpr": 0.05, "null_fpr_low": 0.01, "null_fpr_high": 0.2, "null_models": 4}
"""Rates of null models as promised."""
LEAST = {"split__reference_models": 4, "audit__beta": 0.3, "split__null_models": 0, "split__overfitted_models": 0}
"""Where only targets are looked at."""


def small_plan(store: Path, **changes: Any) -> TmiaPlan:
    """Return the smallest plan, which is in mode I, with some changes."""
    plan = smallest_plan("tmia", store, **{name.replace("__", "."): value for name, value in changes.items()})
    assert isinstance(plan, TmiaPlan)
    return plan


def three_modes(store: Path, **changes: Any) -> TmiaPlan:
    """Return the plan of few attacks in each mode."""
    few = {"audit__attacks": FEW, "audit__selectors": ["none", "kmeans"], "variants": MODES}
    return small_plan(store, **few | changes)


def failed(limits: list[str], plan: BasePlan, document: dict[str, Any]) -> list[str]:
    return failures(gates_of(limits, KIND.headline, plan), KIND.headline, plan, {"plan": plan.resolved(), **document})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has what the smallest plan makes."""
    return store_of("tmia", tmp_path_factory.mktemp("tmia") / "store")


@pytest.fixture(scope="module")
def finished() -> tuple[Result, Path]:
    """The smallest plan's run: mode I, all attacks, all selections."""
    return result_of(kept.finished("tmia")), kept.finished("tmia")


@pytest.fixture(scope="module")
def in_three_modes(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return audited(three_modes(store), tmp_path_factory.mktemp("tmia-run"))


def artefacts(store: Path) -> Counter[str]:
    kept = Store(str(store))
    return Counter({stage: len(kept.keys(stage)) for stage in ("train", "select", "query", "score")})


def test_an_audit_runs_its_mode_and_its_variants(in_three_modes: Result, finished: tuple[Result, Path]) -> None:
    document = in_three_modes.document
    assert [(entry["setting"], entry["mode"]) for entry in document["settings"]] == [
        ("I", "I"), ("II", "II"), ("III", "III"),
    ]  # fmt: skip
    assert document["kind"] == "tmia"
    assert {cell["selection"] for cell in document["table"]} == {"all", "none", "kmeans"}
    result, out = finished
    for name in ("result.json", "scores.parquet", "report.html", "plan.yaml"):
        assert (out / name).is_file()
    assert {cell["selection"] for cell in result.document["table"]} == {
        *("all", "none", "kmeans", "reference_loss", "neighbours", "gnq")
    }


def test_labels_are_counted_as_the_schedule_says(in_three_modes: Result) -> None:
    asked = {
        (cell["setting"], cell["attack"]): cell["queries_per_point"]
        for cell in in_three_modes.document["table"]
        if cell["selection"] == "none"
    }
    assert {asked[name, "tmia_distance"] for name in ("I", "II", "III")} == {hop_skip_jump.RANK.queries}
    assert asked["I", "noise_votes"] == 8
    assert asked["II", "noise_votes"] == 9  # y* is the model's own label, which is asked first


def test_label_only_attacks_speak_about_the_pool_and_others_about_everybody(in_three_modes: Result) -> None:
    table = in_three_modes.scores.to_pydict()
    found: dict[tuple[str, str], set[int]] = {}
    for setting, access, candidate in zip(table["setting"], table["access"], table["candidate"], strict=True):
        found.setdefault((setting, access), set()).add(candidate)
    for name in ("I", "II", "III"):
        assert len(found[name, "labels"]) == 8
        assert len(found[name, "posteriors"]) == 40


@pytest.mark.parametrize("variants", [{}, pytest.param(MODES, marks=pytest.mark.long)], ids=["I", "all"])
def test_a_second_analysis_asks_nobody_anything(
    in_three_modes: Result, store: Path, tmp_path: Path, variants: dict[str, Any]
) -> None:
    before = artefacts(store)
    plan = three_modes(
        store,
        audit__beta=0.2,
        audit__alpha={"size": 5},
        audit__reconstruction={"map": "isotonic", "points": 6, "models": 2},
        variants=variants,
        **{} if variants else {"audit__attacks": [*FEW, "tmia"]},  # which mode I has asked for
    )
    audited(plan, tmp_path)
    assert artefacts(store) - before == Counter({"score": len(plan.settings())})


@pytest.mark.long
def test_other_points_of_the_fit_ask_no_candidate_again(store: Path, tmp_path: Path) -> None:
    audited(three_modes(store, audit__attacks=["tmia"]), tmp_path)
    before = artefacts(store)
    other = {"points": 14, "models": 2}
    result = audited(three_modes(store, audit__attacks=["tmia"], audit__reconstruction=other), tmp_path)
    posteriors, pairs = 2, 1  # units of all reference models, and of the two to whose pairs the map is fitted
    assert artefacts(store) - before == Counter({"score": 3, "query": 3 * (posteriors + pairs)})
    assert all(row["pairs"] + row["dropped"] == 14 * 2 for row in result.document["reconstruction"])


def test_overfitted_models_are_judged(finished: tuple[Result, Path]) -> None:
    document = finished[0].document
    rows = document["overfitted"]
    asked = {"labels": 8, "posteriors": 40, "white_box": 40}
    assert {(row["setting"], row["attack"]) for row in rows} == {
        (cell["setting"], cell["attack"]) for cell in document["table"]
    }
    assert all((row["models"], row["candidates"]) == (TARGETS, asked[row["access"]]) for row in rows)
    whole = {row["attack"]: row["auc"] for row in rows if row["setting"] == "I" and row["access"] == "posteriors"}
    assert whole["tmia_posterior"] > 0.6  # 20 candidates, four times each, in a model of 40 points at most
    kept = {"group": "overfitted", "setting": "I", "attack": "tmia_posterior"}
    told = [row for row in finished[0].scores.to_pylist() if all(row[name] == value for name, value in kept.items())]
    own = [[row for row in told if row["model"] == model] for model in range(TARGETS)]
    areas = [area(*(np.array([row[name] for row in rows]) for name in ("p", "member"))) for rows in own]
    assert np.mean(areas) == pytest.approx(whole["tmia_posterior"])


@pytest.mark.parametrize(
    "changes",
    [{"variants": {}, "audit__attacks": ["tmia_posterior"]}, pytest.param({}, marks=pytest.mark.long)],
    ids=["I", "all"],
)
def test_overfitted_models_change_no_other_number(store: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    few, without = (
        audited(three_modes(store, split__overfitted_models=models, **changes), tmp_path / str(models)).document
        for models in (TARGETS, 0)
    )
    assert without["table"] == few["table"]
    assert few["overfitted"] and without["overfitted"] == []


def area(p: Any, member: Any) -> float:
    """Return the share of pairs of a member and another of which the member has the lower p, ties a half."""
    lower = p[member][:, None] - p[~member][None, :]
    return float((lower < 0).mean() + (lower == 0).mean() / 2)


def test_an_attack_that_cannot_speak_is_named_and_the_others_are_judged(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise BadInput("too few pairs")

    monkeypatch.setattr("audits.tmia.attacks.tmia.fitted_map", refuse)
    attacks = ["tmia", "tmia_smoothed", "tmia_distance", "yeom"]
    plan = small_plan(store, audit__beta=0.25, audit__attacks=attacks, audit__selectors=["none"])
    result = audited(plan, tmp_path)
    assert "attack tmia failed and has no result there: too few pairs" in result.document["warnings"]
    spoken = {row["attack"] for row in result.document["table"]}
    assert "tmia" not in spoken
    assert spoken == {"tmia_distance", "yeom"}
    (line,) = failed(["precision_low=0.99"], plan, result.document)
    assert "inconclusive: no result of tmia (I), tmia_smoothed (I); see the warnings" in line


def test_the_same_plan_again_does_nothing(finished: tuple[Result, Path], store: Path, tmp_path: Path) -> None:
    before = artefacts(store)
    again = audited(small_plan(store), tmp_path)
    assert artefacts(store) == before
    assert again.document["population"]["trained"] == 0
    assert (tmp_path / "scores.parquet").read_bytes() == (finished[1] / "scores.parquet").read_bytes()


@pytest.mark.parametrize("mode", ["II", "III"])
def test_no_reference_or_null_model_starts_from_a_teacher_of_a_target(mode: str, store: Path) -> None:
    plan = three_modes(store)
    design: Any = open_design(plan.changed(plan.settings()[mode]))
    teachers: dict[str, set[str]] = {}
    for model in design.models.values():
        if model.teacher:
            teachers.setdefault(model.group, set()).add(model.teacher)
            assert design.models[model.teacher].group == model.group
    assert {group: len(names) for group, names in teachers.items()} == GROUPS


def test_names_of_models_keep_the_words_from_which_their_seeds_are_derived(store: Path) -> None:
    plan = three_modes(store)
    design: Any = open_design(plan.changed(plan.settings()["II"]))
    words = {"target": "target", "reference": "contrast", "null": "fresh", "overfitted": "overfitted"}
    for model in design.models.values():
        assert model.name == f"{model.side}-{words[model.group]}-{model.index}"


@pytest.mark.parametrize("mode", ["I", "II", "III"])
def test_only_targets_and_overfitted_models_saw_candidates(mode: str, store: Path) -> None:
    plan = three_modes(store)
    design: Any = open_design(plan.changed(plan.settings()[mode]))
    candidates = design.sets.candidates
    seen = Counter(
        (model.group, model.side) for model in design.models.values() if np.isin(model.train, candidates).any()
    )
    assert seen == {("target", "own"): TARGETS, ("overfitted", "own"): TARGETS}


def test_teachers_of_attack_two_are_the_models_of_attack_one(store: Path) -> None:
    plan = small_plan(store, variants={"II": {"audit.mode": "II", "transfer.n_frozen": 1}})
    first, second = (open_design(plan.changed(changes)) for changes in plan.settings().values())
    keys = {job.key for job in of_stage(first.jobs(), "train")}
    assert keys < {job.key for job in of_stage(second.jobs(), "train")}


def test_the_cost_counts_the_queries_that_are_asked(store: Path) -> None:
    cost = estimate(KIND, three_modes(store))
    queries = {entry.attack: entry for entry in cost.queries}
    assert queries["tmia_distance"].per_target == 3 * 8 * hop_skip_jump.RANK.queries
    assert queries["tmia_posterior"].per_target == 3 * 40
    assert queries["label_gap"].per_target == 8  # in mode I alone
    assert {stage.stage for stage in cost.stages} == {"train", "select", "query", "score"}


def test_weights_are_looked_into_for_attacks_that_read_them_alone(store: Path) -> None:
    assert not of_stage(open_design(three_modes(store)).jobs(), "look")
    plan = small_plan(store, audit__attacks=["nasr", "stolen_memories", "yeom"], audit__selectors=["none"])
    looks = of_stage(open_design(plan).jobs(), "look")
    assert [(job.label, len(job.document["models"])) for job in looks] == [
        ("target", TARGETS),
        ("reference", 10),
        ("null", 1),
        ("overfitted", TARGETS),
    ]
    lines = {entry.attack: (entry.access, entry.total) for entry in estimate(KIND, plan).queries}
    assert lines == {
        "nasr": ("white_box", 0),
        "stolen_memories": ("white_box", 0),
        "yeom": ("posteriors", TARGETS * 40),
    }


@pytest.mark.long
def test_attacks_that_read_weights_judge_all_candidates(store: Path, tmp_path: Path) -> None:
    plan = small_plan(store, audit__attacks=["nasr", "stolen_memories", "yeom"], audit__selectors=["none"])
    result = audited(plan, tmp_path)
    found = {cell["attack"]: cell for cell in result.document["table"] if cell["selection"] == "all"}
    assert {name: (cell["candidates"], cell["null_models"]) for name, cell in found.items()} == dict.fromkeys(
        ("nasr", "stolen_memories", "yeom"), (40, 1)
    )
    assert not any("failed" in line for line in result.document["warnings"])


def test_the_class_that_counts_is_the_true_one_where_a_model_has_it() -> None:
    own = np.array([[4, 5, 6], [7, 8, 9]])
    assert filled(np.array([1, -1, 2]), own).tolist() == [[1, 5, 2], [1, 8, 2]]
    assert filled(None, own) is own


def test_students_are_read_at_the_true_class_where_they_have_it(store: Path, tmp_path: Path) -> None:
    plan = small_plan(
        store, audit__mode="II", audit__star="true", split__classes=[0, 1, 2, 3],
        transfer__classes=[2, 3, 7], transfer__n_frozen=1,
        audit__attacks=["noise_votes", "tmia_posterior"], audit__selectors=["none"], **LEAST,
    )  # fmt: skip
    design: Any = open_design(plan)
    ids = design.sets.candidates
    places = {0: -1, 1: -1, 2: 0, 3: 1}
    np.testing.assert_array_equal(design.true_star(ids), [places[label] for label in design.data.labels[ids]])
    result = audited(plan, tmp_path)
    asked = {cell["attack"]: cell["queries_per_point"] for cell in result.document["table"]}
    assert asked == {"noise_votes": 9, "tmia_posterior": 1}


FROM_FILE = {"audit.mode": "III", "variants": {}, "transfer.teacher": "weights.safetensors"}

REFUSALS = [
    ({"audit.beta": 0.05}, "audit.beta = 0.05 cannot be reached"),
    ({"audit.mode": "IV"}, "audit.mode"),
    ({"audit.kind": "tmai"}, "did you mean 'tmia'"),
    ({"audit.selectors": ["kmean"]}, "did you mean 'kmeans'"),
    ({"audit.attacks": ["tmia", "gmia4"]}, "audit.attacks.1"),
    ({"audit.attacks": ["tmia", "tmia"]}, "is listed 2 times"),
    ({"audit.alpha": {"quantile": 0.9, "size": 3}}, "give exactly one"),
    ({"audit.alpha": {"absolute": 0.5}}, "one number for kmeans and reference_loss"),
    ({"audit.neighbours.delta": 3.0}, "audit.neighbours.delta"),
    ({"audit.asked": 41}, "up to split.candidates"),
    ({"split.targets": 5}, "split.targets is 5; allowed: even, as they train on opposite halves of the candidates"),
    ({"split.candidates": 39}, "split.candidates is 39; allowed: even, as each target trains on half of them"),
    ({"split.overfitted_models": 3}, "split.overfitted_models is 3; allowed: even"),
    (
        {"audit.star": "true", "audit.mode": "II", "variants": {}, "split.classes": "even", "transfer.classes": "odd"},
        "not the student's",
    ),
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
    ({"split.attacker_points": 1790}, "has 1797"),
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
    plan = three_modes(store)
    second = plan.changed(plan.settings()["II"])
    assert "label_gap" in plan.audit.attacks
    assert "label_gap" not in second.audit.attacks
    assert any("label_gap was left out in mode II" in note for note in second.notes)


def test_candidates_are_selected_by_gradient_uniqueness_where_the_training_set_is_in_question(
    in_three_modes: Result, store: Path, tmp_path: Path
) -> None:
    plan = three_modes(store, audit__selectors=["none", "gnq"], audit__attacks=["tmia_posterior"])
    assert any("gnq was left out in mode II" in note for note in plan.changed(plan.settings()["II"]).notes)
    before = artefacts(store)
    result = audited(plan, tmp_path)
    assert (artefacts(store) - before)["train"] == 0
    rows = {(row["setting"], row["selector"]): row for row in result.document["selections"]}
    assert rows.keys() == {("I", "none"), ("I", "gnq"), ("II", "none"), ("III", "none"), ("III", "gnq")}
    for setting in ("I", "III"):
        assert rows[setting, "gnq"]["rule"] == "above the 0.8 quantile of reference samples"
        assert rows[setting, "gnq"]["threshold"] > 0
        assert 0 < rows[setting, "gnq"]["chosen"] < 40


def test_no_attack_that_ranks_needs_no_reachable_level(store: Path) -> None:
    plan = small_plan(store, audit__beta=0.01, audit__attacks=["yeom"])
    assert plan.audit.beta == 0.01


@pytest.mark.parametrize(
    ("former", "name"),
    [
        ("split.contrast", "split.reference_models"),
        ("split.fresh", "split.null_models"),
        ("split.pool", "split.attacker_points"),
        ("audit.pool", "audit.asked"),
        ("audit.contrast_samples", "audit.reference_samples"),
    ],
)
def test_former_names_of_fields_are_refused_with_the_new_ones(former: str, name: str) -> None:
    with pytest.raises(BadInput, match=rf"^{former} is now called {name}; change the plan$"):
        load_plan("tmia-smoke", values={former: 40})


def test_warnings_of_some_settings_name_them() -> None:
    found = setting_warnings({"a": ["of all", "of one"], "b": ["of all", "of two"], "c": ["of all", "of two"]})
    assert found == ["of all", "setting a: of one", "settings b, c: of two"]


@pytest.mark.long
def test_a_weakness_that_settings_share_is_told_once(store: Path, tmp_path: Path) -> None:
    few = {"audit__attacks": ["yeom"], "audit__selectors": ["none"], "split__attacker_points": 300}
    variants = {"other": {"audit.reference_samples": 30}}
    result = audited(small_plan(store, **few, split__null_models=0, recipe__epochs=1, variants=variants), tmp_path)
    assert [entry["setting"] for entry in result.document["settings"]] == ["I", "other"]
    for text in ("raw ranks of 5 %", "split.null_models is 0"):
        assert len([line for line in result.document["warnings"] if text in line]) == 1, text


def test_teachers_that_are_over_fitted_are_warned_of_where_they_are_in_question() -> None:
    row = {"side": "teacher", "group": "target", "models": 2, "train_accuracy": 0.9, "test_accuracy": 0.8, "gap": 0.1}
    rows = [FitRow(setting=name, flag="overfitted", **row) for name in ("II", "III")]
    (line,) = fit_warnings(rows, ["II"])
    assert line.startswith("setting II: teachers of the targets are over-fitted (train 0.900, test 0.800)")


def test_models_of_the_other_side_are_tested_on_points_of_all_classes(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.tmia.design.TEST_POINTS", 60)
    plan = three_modes(store)
    design: Any = open_design(plan.changed(plan.settings()["II"]))
    order = np.argsort(design.other.labels, kind="stable")
    monkeypatch.setattr(design, "points", lambda side: np.arange(len(order)))
    labels = design.other.labels[order]  # as in sets whose ids stand class by class
    tests = [model.test for model in design.other_models([])]
    assert all(
        len(set(labels[test])) == 10 and not len(np.intersect1d(test, model.train))
        for test, model in zip(tests, design.other_models([]), strict=True)
    )


@pytest.mark.long
def test_students_of_a_file_start_from_it_and_read_what_it_was_trained_on(store: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.safetensors"
    teacher = load_plan("tmia-smoke").model.architecture().build((1, 8, 8), 7, 0).state_dict()
    save_file(teacher, weights)
    plan = small_plan(
        store,
        audit__mode="III",
        audit__attacks=["yeom"],
        audit__selectors=["none"],
        **LEAST,
        transfer={"teacher": str(weights), "teacher_input": "raw", "n_frozen": 1},
    )
    audited(plan, tmp_path / "out")
    design: Any = open_design(plan)
    student = stored(WorkerContext(KIND, design, Store(str(store))), design.models_of("target")[0])
    first = next(iter(teacher))
    assert torch.equal(student.state_dict()[first], teacher[first])
    other = plan.model_copy(update={"transfer": plan.transfer.model_copy(update={"teacher_input": "imagenet"})})
    standardised: Any = open_design(other)
    assert standardised.jobs()[0].key != design.jobs()[0].key
    with pytest.raises(BadInput, match="weights read 3 channels, but images are 1×8×8"):
        standardised.build("own", 10, 0)


def test_models_read_what_torchvisions_weights_were_trained_on(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = small_plan(store, model={"name": "vgg16", "settings": {"width": 2}})
    other = plan.model_copy(update={"transfer": plan.transfer.model_copy(update={"teacher_input": "imagenet"})})
    plain: Any = open_design(plan)
    asked: Any = open_design(other)
    colours = SimpleNamespace(shape=(3, 32, 32))
    for design in (plain, asked):
        monkeypatch.setattr(design, "data_of_side", lambda side: colours)
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor(part).reshape(3, 1, 1) for part in IMAGENET_INPUT)
    expected = plain.build("own", 10, 0).eval()((x - mean) / std)
    assert torch.equal(asked.build("own", 10, 0).eval()(x), expected)


def test_scores_on_disk_hold_every_reference_models_statistic(finished: tuple[Result, Path]) -> None:
    _, out = finished
    table = pq.read_table(out / "scores.parquet", filters=[("attack", "=", "tmia_distance"), ("setting", "=", "I")])
    assert Counter(table["group"].to_pylist()) == {group: 8 * models for group, models in GROUPS.items()}


def test_models_beyond_the_memory_allowed_are_read_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = small_plan(store)
    design: Any = open_design(plan.changed(plan.settings()["I"]))
    context = WorkerContext(KIND, design, Store(str(store)))
    first, second = design.models_of("target")[:2]
    kept = stored(context, first)
    assert stored(context, first) is kept
    monkeypatch.setattr("orchestrator.engine.run.recent.BYTES_IN_MEMORY", 1)
    stored(context, second)
    assert len(context.lately.models) == 1
    assert stored(context, first) is not kept


def test_the_plans_of_a_worker_share_one_memory(store: Path) -> None:
    plan = small_plan(store)
    opened = OpenContexts(KIND, {}, str(store), "cpu", open_design(plan).data.fingerprint)
    lately = Recent()
    contexts = []
    for level in (0.1, 0.2, 0.3):
        changed = plan.changed({**plan.settings()["I"], "audit.beta": level})
        known = replace(opened, plans={changed.plan_hash: changed.resolved()})
        contexts.append(known.open(changed.plan_hash, lately))
    asked: Any = contexts[0].design.models_of("target")[:2]
    assert len({id(stored(context, member)) for context in contexts for member in asked}) == len(asked)
    assert len(lately.models) == len(asked)
    made = [
        int(context.recent("name", lambda place=place: np.full(1, place))[0]) for place, context in enumerate(contexts)
    ]
    assert made == [0, 1, 2]  # an array is its plan's own


def test_the_gate_stops_a_release(finished: tuple[Result, Path]) -> None:
    plan = load_plan("tmia-smoke")

    def of_three_modes(field: str) -> list[dict[str, Any]]:
        """Return rows of mode I as if they were of each mode."""
        known = [row for row in finished[0].document[field] if row["attack"] in plan.audit.attacks]  # type: ignore[attr-defined]
        return [row | {"setting": mode} for mode in ("I", *MODES) for row in known if row.get("selection") != "gnq"]

    gates_of(["precision=0.5", "II.kmeans.tmia.null_fpr=0.9"], KIND.headline, plan)
    for text, message in (
        ("precision", "write it as METRIC=VALUE"),
        ("precison=0.5", "did you mean 'precision'"),
        ("precision=1.5", "from 0 up to"),
        ("IV.kmeans.tmia.precision=0.5", "setting 'IV'"),
        ("I.kmean.tmia.precision=0.5", "selection 'kmean'"),
    ):
        with pytest.raises(BadInput, match=re.escape(message)):
            gates_of([text], KIND.headline, plan)

    cells = [{**cell, **KEPT, "precision": 0.8} for cell in of_three_modes("table")]
    sure = [{**row, "auc": 0.9, "auc_low": 0.8, "auc_high": 1.0} for row in of_three_modes("overfitted")]

    def held(limit: str, table: list[dict[str, Any]], overfitted: list[dict[str, Any]] = sure) -> list[str]:
        settings = [{"setting": mode, "overrides": {}, "mode": mode} for mode in ("I", *MODES)]
        document = {**finished[0].document, "settings": settings, "table": table, "overfitted": overfitted}
        return failed([limit], plan, judge(TmiaRun.of(document).result).document())

    (line,) = held("precision=0.7", cells, [])
    assert line.startswith("gate precision=0.7: failed: precision is 0.800")
    assert held("precision=0.9", cells) == []
    (line,) = held("precision=0.9", cells, [])
    assert "inconclusive: control over-fitted models: not in this run" in line
    weak = [{**row, "auc": 0.6, "auc_low": 0.4} if row["setting"] == "III" else row for row in sure]
    (line,) = held("precision=0.9", cells, weak)
    assert "control over-fitted models: Their members are not recognised" in line and "AUC .60 [.40, 1.00]" in line
    assert held("I.none.tmia.precision=0.9", cells, weak) == []
    one = [{**row, "auc_low": 0.8} if row["attack"] == "tmia_distance" else row for row in weak]
    assert held("precision=0.9", cells, one) == []  # the verdict's attack sees
    other = [{**row, "auc_low": 0.8} if row["attack"] == "yeom" else row for row in weak]
    assert len(held("precision=0.9", cells, other)) == 1  # not one of the verdict's
    (line,) = held("posteriors.auc=0.99", [{**cell, "auc": 0.995} for cell in cells])
    assert line.startswith("gate posteriors.auc=0.99: failed: auc is 0.995")
    place = next(place for place, cell in enumerate(cells) if cell["expected_false_positives"] is not None)
    bad = {"null_fpr": 0.9, "null_fpr_low": 0.85, "null_fpr_high": 0.95}
    off = [{**cell, **(bad if each == place else {})} for each, cell in enumerate(cells)]
    (line,) = held("auc=0.99", off)
    assert line.startswith("gate auc=0.99: inconclusive: control null models: Called members more often than promised")
    assert "in 1 of " in line and line.count("90.0") == 1
    assert held("III.none.tmia.precision=0.9", off) == []  # it is kept there
    undefined = [{**cell, "precision": None} for cell in cells]
    (line,) = held("precision=0.1", undefined)  # an attack without power calls nobody, too
    assert "precision is not defined in any line" in line
    told = next(cell for cell in cells if cell["access"] == "labels")
    assert held("precision=0.9", [*undefined[1:], told]) == []
    (line,) = held("I.kmeans.tmia.precision=0.1", undefined)
    assert "was not measured" in line


def test_false_calls_on_null_models_are_judged_by_what_is_promised() -> None:
    names = ("candidates", "targets", "true_positives", "false_positives", "members", "non_members", "null_models")
    counts: dict[str, Any] = dict.fromkeys((*names, "null_candidates", "null_false_positives", "null_pairs"), 1)
    nothing: dict[str, Any] = dict.fromkeys(("precision", "coverage", "fpr", "auc"), Estimate())
    nothing |= dict.fromkeys(("precision_t", "coverage_t", "fpr_t"), Span())

    counts["null_models"] = 20

    def cell(setting: str, low: float, attained: float = 0.05, expected: float | None = 10.0) -> TmiaCell:
        return TmiaCell(
            **counts, **nothing, setting=setting, mode="I", selection="none", attack="tmia", access="labels", beta=0.05,
            attained=attained, expected_false_positives=expected, null_fpr=Estimate(0.09, low, 0.95),
            null_expected=expected, queries_per_point=1, failed=0,
        )  # fmt: skip

    cells = [cell("I", 0.02), cell("II", 0.07), cell("II", 0.02), cell("II", 0.0899, expected=None)]
    cells.append(cell("III", 0.045, attained=0.04))  # below what is promised
    found = judged_cells(cells, 0.95)
    assert [each.null_fpr_off for each in found] == [False, True, False, False, False]
    assert found[1].null_fpr_p_holm == pytest.approx(0.001, rel=0.5)  # of the four that promise a rate


def test_numbers_of_comparison_are_known_beforehand(finished: tuple[Result, Path], store: Path) -> None:
    assert numbers_compared(small_plan(store))
