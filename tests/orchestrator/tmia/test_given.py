"""A TMIA audit of a model that was trained elsewhere: in modes I, II and III, its controls, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.data.catalogue import load
from audits.errors import BadInput
from audits.statistics.one_target import SAYS
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.jobs.job import of_stage
from orchestrator.engine.run.run import Result
from orchestrator.engine.store.store import Store
from orchestrator.judgement.controls import AGREEMENT
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import check_against_data, load_plan, open_design
from orchestrator.tmia.kind import KIND
from orchestrator.tmia.page.page import PAGE
from orchestrator.tmia.page.verdict import verdict
from orchestrator.tmia.plan import TmiaPlan
from orchestrator.tmia.result.judging import judge
from orchestrator.tmia.result.run import TmiaRun
from tests.cases.foreign_models import saved, trained_elsewhere
from tests.cases.runs import audited, draw_only, jobs_of, take_turns, two_in_turn

pytestmark = pytest.mark.slow

MEMBERS = 60
SMALL: dict[str, Any] = {
    "variants": {},
    "compute.workers": 0,
    "split": {"reference_models": 12, "null_models": 2, "candidates": 40, "train_size": MEMBERS,
              "attacker_points": 700, "filler": 200},
    "target": {"members": "members.txt"},
    "audit.attacks": ["tmia_distance", "tmia_posterior", "yeom", "label_gap"],
    "audit.asked": 8,
    "audit.reference_samples": 60,
    "audit.reconstruction.models": 2,
    "recipe.epochs": 4,
    "compute.chunk": 8,
}  # fmt: skip
FEW: dict[str, Any] = {"audit.attacks": ["tmia_posterior"], "audit.beta": 0.3}
FEW |= {"split": {**SMALL["split"], "reference_models": 4, "null_models": 0}}
STUDENT = {"audit.mode": "III", "transfer.teacher": "teacher.pt", "transfer.teacher_input": "raw"}


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 60 points, its teacher and a student of it, by a loop of somebody else's."""
    folder = tmp_path_factory.mktemp("given")
    data = load("digits")
    members = np.arange(0, 3 * MEMBERS, 3)
    (folder / "members.txt").write_text("\n".join(map(str, members)))
    names = list(load_plan("tmia-smoke").model.architecture().build((1, 8, 8), 10, 0).state_dict())
    torch.manual_seed(0)
    net, teacher = mlp(), mlp()
    x, y = data.tensors(members).all()
    saved(trained_elsewhere(net, x, y, steps=120, seed=0), folder / "weights.pt", names)
    others = data.tensors(np.arange(1700, 1790)).all()
    saved(trained_elsewhere(teacher, *others, steps=60, seed=1), folder / "teacher.pt", names)
    student = mlp()
    student.load_state_dict({**teacher.state_dict(), "3.weight": torch.randn(10, 16) / 4, "3.bias": torch.zeros(10)})
    saved(trained_elsewhere(student, x, y, steps=120, seed=2), folder / "student.pt", names)
    return folder


def given_values(folder: Path, weights: str = "weights.pt", **changes: Any) -> dict[str, Any]:
    """Return what the plan of a model in ``folder`` changes in the shipped one."""
    target = {"weights": str(folder / weights), "members": str(folder / "members.txt"), **changes.pop("target", {})}
    values = {**SMALL, "compute.store": str(folder / "store"), **changes, "target": target}
    if "transfer.teacher" in values:
        values["transfer.teacher"] = str(folder / values["transfer.teacher"])
    return values


def given_plan(folder: Path, weights: str = "weights.pt", **changes: Any) -> TmiaPlan:
    plan = load_plan("tmia-smoke", values=given_values(folder, weights, **changes))
    assert isinstance(plan, TmiaPlan)
    return plan


@pytest.fixture(scope="module")
def finished(folder: Path) -> tuple[Result, Path]:
    plan = given_plan(folder)
    check_against_data(plan)
    result = audited(plan, folder / "out")
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "none")
        PAGE.write(folder / "out")
    return result, folder / "out"


def test_the_given_model_alone_is_in_the_table_and_controls_beside_it(finished: tuple[Result, Path]) -> None:
    result, out = finished
    document = json.loads((out / "result.json").read_text())
    assert {cell["targets"] for cell in document["table"]} == {1}
    assert {(cell["members"], cell["non_members"]) for cell in document["table"] if cell["selection"] == "all"} == {
        (20, 20)
    }
    assert {row["control"] for row in document["own_models"]} == {0, 1}
    assert {row["group"]: row["models"] for row in document["fit"]}.items() >= {"target": 1, "control": 2}.items()
    assert {row["group"] for row in document["fit"]} == {"target", "control", "reference", "null"}
    assert SAYS in document["notes"] and SAYS in (out / "report.html").read_text()
    assert any("split.targets and split.overfitted_models do not count" in note for note in document["notes"])
    groups = result.scores.filter(np.asarray(result.scores["attack"]) == "tmia_posterior").to_pydict()
    assert Counter(zip(groups["group"], groups["model"], strict=True)).keys() == {
        ("target", 0), ("control", 0), ("control", 1), ("null", 0), ("null", 1),
        *(("reference", place) for place in range(12)),
    }  # fmt: skip
    member = [point for point, inside, group in zip(groups["point_id"], groups["member"], groups["group"], strict=True)
              if inside and group == "target"]  # fmt: skip
    assert len(member) == 20 and all(point % 3 == 0 and point < 180 for point in member)


def test_an_overfitted_model_is_seen_and_its_controls_are_judged(finished: tuple[Result, Path]) -> None:
    result, _ = finished
    cells = {cell["attack"]: cell for cell in result.document["table"] if cell["selection"] == "all"}
    assert cells["tmia_posterior"]["auc"] > 0.6
    assert cells["tmia_posterior"]["auc_low"] < cells["tmia_posterior"]["auc"] < cells["tmia_posterior"]["auc_high"]
    assert {cell["resampled"] for cell in result.document["table"]} == {"points and reference models"}
    (alike,) = result.document["alike"]
    assert alike["auc_low"] < 0.5 < alike["auc_high"] and not alike["differ"]


def test_the_verdict_says_whom_it_is_about(finished: tuple[Result, Path]) -> None:
    run = TmiaRun.of(finished[0].document)
    assert {part.head: part.text for part in verdict(run)}["Scope"] == SAYS
    names = {"null models", "known non-members of the target", "own models", "fit of own models"}
    assert {each.name for each in run.result.controls} >= names | {"members are like non-members"}
    assert {"own-models-I", "controls"} <= {grid.file for grid in PAGE.grids(finished[1])}


def test_a_student_is_asked_about_its_own_points_with_reference_students_of_the_given_teacher(
    folder: Path, tmp_path: Path
) -> None:
    plan = given_plan(folder, "student.pt", **STUDENT, **FEW)
    check_against_data(plan)
    result = audited(plan, tmp_path)
    assert {cell["mode"] for cell in result.document["table"]} == {"III"}
    assert {row["side"] for row in result.document["fit"]} == {"asked"}
    design: Any = open_design(plan)
    assert all(design.student(model) for model in design.models.values() if model.name != "given")


@pytest.mark.long
def test_a_student_is_asked_about_the_points_of_its_teacher(folder: Path, tmp_path: Path) -> None:
    plan = given_plan(folder, "student.pt", **FEW, **{"audit.mode": "II", "transfer.train_size": 60})
    result = audited(plan, tmp_path)
    (mode,) = {cell["mode"] for cell in result.document["table"]}
    assert mode == "II" and {row["side"] for row in result.document["fit"]} == {"asked", "teacher"}


def test_the_given_model_is_not_trained_and_asked_apart_from_its_controls(folder: Path) -> None:
    plan = given_plan(folder)
    assert [job.member for job in jobs_of(plan, "given")] == ["points", "weights"]
    assert not any("given" in job.member for job in jobs_of(plan, "train"))
    asked = [job for job in jobs_of(plan, "query") if job.label == "target" and job.kind == "posteriors"]
    assert [len(job.document["models"]) for job in asked] == [1, 2]
    more = [job for job in jobs_of(given_plan(folder, target={"controls": 4}), "query") if job.label == "target"]
    assert asked[0].key in {job.key for job in more}
    queries = {entry.attack: entry for entry in estimate(KIND, plan).queries}
    assert queries["tmia_posterior"].total == queries["tmia_posterior"].per_target == 40
    assert queries["label_gap"].total == 8


@pytest.mark.long
def test_workers_need_not_see_the_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: tuple[Result, Path]
) -> None:
    def without_files(jobs: Any, make_perform: Any, workers: Any, **how: Any) -> None:
        for name in ("weights.pt", "members.txt"):
            (tmp_path / name).unlink(missing_ok=True)
        two_in_turn(jobs, make_perform, workers, **how)

    for name in ("weights.pt", "members.txt"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    take_turns(monkeypatch, without_files)
    changes = {"compute.store": str(tmp_path / "store"), "compute.workers": 2, "audit.attacks": ["tmia_posterior"]}
    result = audited(given_plan(tmp_path, **changes), tmp_path / "out")
    expected = [cell for cell in finished[0].document["table"] if cell["attack"] == "tmia_posterior"]
    names = ("selection", "candidates", "true_positives", "false_positives", "fpr", "null_fpr")
    assert [{name: cell[name] for name in names} for cell in result.document["table"]] == [
        {name: cell[name] for name in names} for cell in expected
    ]


def test_an_edited_file_is_another_target(folder: Path, tmp_path: Path, finished: tuple[Result, Path]) -> None:
    for name in ("weights.pt", "members.txt"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    before = {job.key for job in jobs_of(given_plan(tmp_path))}
    assert before == {job.key for job in jobs_of(given_plan(folder))}
    (tmp_path / "weights.pt").write_bytes((folder / "student.pt").read_bytes())
    after = jobs_of(given_plan(tmp_path))
    trained = {job.key for job in of_stage(after, "train", "select")}
    assert trained <= before and {job.key for job in of_stage(after, "score")}.isdisjoint(before)
    assert {job.member for job in of_stage(after, "given") if job.key in before} == {"points"}
    plan = load_plan(str(finished[1] / "plan.yaml"), values={"target.weights": str(folder / "weights.pt")})
    assert set(plan.target.sha256) == {str(folder / "weights.pt"), str(folder / "members.txt")}


def rejudged(document: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a result with other rows, judged by them."""
    return judge(TmiaRun.of({**document, **fields}).result).document()


def test_the_gate_counts_the_targets_own_non_members_as_a_control(finished: tuple[Result, Path], folder: Path) -> None:
    plan, document = given_plan(folder), finished[0].document
    kept = {"fpr": 0.05, "fpr_low": 0.01, "fpr_high": 0.1, "null_fpr": 0.05, "null_fpr_low": 0.01}
    broken = {"fpr": 0.5, "fpr_low": 0.45, "fpr_high": 0.55}

    def failed(limit: str, fit: Sequence[Mapping[str, Any]] = (), area: float = 0.7, **fields: Any) -> list[str]:
        table = [{**cell, **kept, **fields} for cell in document["table"]]
        gates = gates_of([limit], KIND.headline, plan)
        own = [{**cell, "auc": area, "auc_low": area - 0.1, "auc_high": area + 0.1} for cell in document["own_models"]]
        return failures(
            gates, KIND.headline, plan, rejudged(document, table=table, fit=[*fit], own_models=own if area else [])
        )

    def fits(own: float) -> list[dict[str, Any]]:
        accuracies = {"target": 0.93, "control": own, "reference": 0.2}
        rows = [row for row in document["fit"] if row["group"] in accuracies]
        return [{**row, "train_accuracy": accuracies[row["group"]], "test_accuracy": 0.7} for row in rows]

    assert failed("precision=0.99", precision=0.5) == []
    (line,) = failed("precision=0.4", precision=0.5)
    assert line.startswith("gate precision=0.4: failed: precision is 0.500")
    (line,) = failed("auc=0.99", **broken, auc=0.5)
    assert "inconclusive: control known non-members of the target: Called members more often than promised" in line
    (line,) = failed("I.none.tmia_distance.precision=0.4", **broken, precision=0.5)
    assert "inconclusive: precision is void" in line
    (line,) = failed("I.none.label_gap.precision=0.4", **broken, precision=0.5)  # it promises no rate
    assert "failed: precision is 0.500" in line
    (line,) = failed("auc=0.4", **broken, auc=0.5)
    assert "failed: auc is 0.500" in line
    assert failed("auc=0.99", fits(0.88), auc=0.5) == []
    (line,) = failed("auc=0.99", fits(0.76), auc=0.5)
    assert "inconclusive: control fit of own models" in line and "target.members does not name" in line
    (line,) = failed("auc=0.4", fits(0.76), auc=0.5)
    assert "failed: auc is 0.500" in line
    (line,) = failed("auc=0.99", area=0.55, auc=0.5)
    assert "inconclusive: control own models: Their members are not recognised" in line and "AUC .55 [.45, .65]" in line
    (line,) = failed("auc=0.4", area=0.55, auc=0.5)
    assert "failed: auc is 0.500" in line
    (line,) = failed("auc=0.99", area=0, auc=0.5)
    assert "inconclusive: control own models: not in this run" in line


def test_members_that_are_unlike_non_members_leave_a_gate_inconclusive(
    finished: tuple[Result, Path], folder: Path
) -> None:
    plan, document = given_plan(folder), finished[0].document
    rows = [{**row, "auc": 0.7, "auc_low": 0.6, "auc_high": 0.8, "differ": True} for row in document["alike"]]
    unlike = rejudged(document, alike=rows)
    for limit in ("auc=0.99", "auc=0.01"):
        (line,) = failures(gates_of([limit], KIND.headline, plan), KIND.headline, plan, unlike)
        assert line.startswith(f"gate {limit}: inconclusive: ")
        assert "control members are like non-members: " in line and "(AUC .70 [.60, .80])" in line
        assert line.count("auc is ") == 1


@pytest.mark.parametrize(
    ("given", "own", "state"),
    [
        ((0.52, 0.48, 0.56), (0.70, 0.64, 0.76), "failed"),
        ((0.57, 0.49, 0.65), (0.70, 0.64, 0.76), "held"),
        ((0.52, 0.48, 0.56), (0.52, 0.46, 0.58), "held"),
        ((0.70, 0.66, 0.74), (0.56, 0.50, 0.62), "failed"),
    ],
)
def test_members_must_stand_out_as_those_of_own_models(
    finished: tuple[Result, Path], given: tuple[float, ...], own: tuple[float, ...], state: str
) -> None:
    document, names = finished[0].document, ("auc", "auc_low", "auc_high")
    table = [{**row, **dict(zip(names, given, strict=True))} for row in document["table"]]
    own_models = [{**row, **dict(zip(names, own, strict=True))} for row in document["own_models"]]
    found = rejudged(document, table=table, own_models=own_models)
    assert {each["name"]: each["state"] for each in found["verdict"]["controls"]}.get(
        "agreement with own models"
    ) == state
    said = {each["why"] for each in found["controls"] if (each["name"], each["state"]) == (AGREEMENT.term, state)}
    assert any("target.members does not name its training points" in why for why in said) == (given[2] < own[1])


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"target": {"controls": 3}}, "target.controls is 3; allowed: even"),
    ({"target": {"members": "0:1790"}}, "known non-members"),
    ({"target": {"non_members": "0:1000"}}, "target.non_members has 60 points in target.members as well"),
    ({"target": {"weights": "/nowhere.pt"}}, "/nowhere.pt cannot be read"),
    ({"audit.attacks": ["lira_oracle", "yeom"]}, "lira_oracle reads the truth about other targets"),
    ({"audit.reconstruction.pairs": "paper"}, "with a target give 'reference'"),
    ({"variants": {"II": {"audit.mode": "II"}}}, "variants.II: audit.mode cannot differ between variants of one given"),
    ({"data.groups": "groups.csv"}, "leave data.groups out"),
    ({"model": {"name": "mlp", "settings": {"hidden": [17]}}}, "does not fit the architecture of the section model"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS, ids=[message for _, message in REFUSALS])
def test_what_cannot_be_asked_of_one_model_is_refused_in_one_line(
    folder: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    def whole() -> None:
        plan = given_plan(folder, **{**changes, "compute.store": str(tmp_path / "store")})
        check_against_data(plan)
        audited(plan, tmp_path / "out")

    with pytest.raises(BadInput) as caught:
        whole()
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not Store(str(tmp_path / "store")).keys("train")


def test_a_plan_without_a_target_has_no_more_than_a_null_more() -> None:
    plan = load_plan("tmia-smoke")
    assert plan.resolved()["target"] is None
    assert not jobs_of(plan, "given")
