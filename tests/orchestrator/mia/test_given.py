"""A membership audit of a model that a plain PyTorch loop trained: design, numbers, controls, files, page."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.catalogue import load
from audits.errors import BadInput
from audits.statistics.one_target import SAYS, area_interval, jackknife_variance
from audits.statistics.roc import auc
from orchestrator.cli.main import main
from orchestrator.engine.run.run import Result
from orchestrator.engine.store.store import Store
from orchestrator.judgement.controls import Told, unlike_own
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.judgement.wording import capital
from orchestrator.kinds import check_against_data, kind_named, load_plan, open_design
from orchestrator.mia.design import GIVEN
from orchestrator.mia.headline import HEADLINE
from orchestrator.mia.page.reading import MiaRun
from orchestrator.mia.result.given import unlike_fits
from orchestrator.mia.result.judging import judge
from orchestrator.mia.result.rows import FitRow
from orchestrator.mia.stages.given_details import without_pairs
from orchestrator.mia.stages.scoring import case_at
from orchestrator.report.rows import read_row
from tests.cases.runs import UnshownRun, audited, context_of, draw_only, take_turns, two_in_turn

PLAN = """
audit: {kind: mia, fpr: [0.2], attacks: [rmia, lira_offline, loss, label_gap], bootstrap: 40, permutations: 40}
data: {name: digits}
split: {train_size: 60, shadows: 6, test: 100}
model: {name: mlp, settings: {hidden: [16]}}
recipe: {learning_rate: 0.01, epochs: 25, batch_size: 12}
target: {weights: weights.pt, members: members.txt}
"""
MEMBERS = 80
ALONE: dict[str, Any] = {"audit__attacks": ["loss"], "split__shadows": 0}
"""An audit by an attack that needs no shadow."""


def own_loop(members: Any, file: Path, seed: int = 0) -> None:
    """Train a network as anybody might, and leave its weights; nothing of this project takes part."""
    data = load("digits")
    x, y = data.tensors(np.sort(members)).all()
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    optimiser = torch.optim.AdamW(net.parameters(), 0.01)
    for _ in range(25):
        for rows in torch.randperm(len(x)).split(12):
            optimiser.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimiser.step()
    torch.save(net.state_dict(), file)


@dataclass(frozen=True)
class Bench:
    """A folder with somebody's model in it, and a store."""

    place: Path

    def plan(self, **changes: Any) -> Any:
        named = {"compute.workers": 0, "compute.store": str(self.place / "store")}
        return load_plan("plan.yaml", values=named | {name.replace("__", "."): each for name, each in changes.items()})


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    place = tmp_path_factory.mktemp("given")
    members = np.random.default_rng(5).permutation(1797)[:MEMBERS]
    own_loop(members, place / "weights.pt")
    (place / "members.txt").write_text("".join(f"{point}\n" for point in members))
    (place / "plan.yaml").write_text(PLAN)
    return Bench(place)


@pytest.fixture(autouse=True)
def there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the model lies, as its owner does."""
    monkeypatch.chdir(bench.place)


@pytest.fixture(scope="module")
def finished(bench: Bench) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(bench.place)
        return audited(bench.plan(), bench.place / "out")


def row_of(finished: Result, field: str, **place: Any) -> dict[str, Any]:
    (found,) = [row for row in finished.document[field] if all(row[name] == value for name, value in place.items())]
    return found


def test_every_model_trains_on_as_many_points_as_the_given_one_which_is_one_of_them(bench: Bench) -> None:
    design: Any = open_design(bench.plan())
    members = np.sort(np.loadtxt("members.txt", dtype=np.int64))
    assert design.trained_on(design.models[GIVEN]).tolist() == members.tolist()
    others = [model for name, model in design.models.items() if name != GIVEN]
    assert [model.group for model in others] == ["own"] * 2 + ["shadow"] * 6
    filler, pool = set(design.given.filler), set(design.drawn.pools[0])
    assert len(filler) == MEMBERS - 60 and len(pool) == 120 and not filler & pool
    for one, twin in zip(others[::2], others[1::2], strict=True):
        points, rest = (set(design.trained_on(model)) for model in (one, twin))
        assert len(points) == len(rest) == MEMBERS
        assert points & rest == filler and points | rest == filler | pool
        assert not (points | rest) & set(design.drawn.test)
    assert not set(design.drawn.test) & set(members)


def test_scores_are_those_of_the_module_itself_and_the_truth_is_the_file(finished: Result, bench: Bench) -> None:
    table = finished.scores.to_pandas()
    loss = table[(table.attack == "loss") & (table.role == "target")]
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    net.load_state_dict(torch.load("weights.pt"))
    x, y = load("digits").tensors(loss.point_id.to_numpy()).all()
    expected = -F.cross_entropy(net(x), y, reduction="none").detach().double()
    np.testing.assert_allclose(loss.score, expected, rtol=1e-4, atol=1e-5)
    members = set(np.loadtxt("members.txt", dtype=int))
    assert loss.member.tolist() == [point in members for point in loss.point_id]
    assert set(table.role) == {"target", "own"} and table[table.role == "own"].target.unique().tolist() == [1, 2]


def test_intervals_are_of_one_model_over_points_and_shadows(finished: Result, bench: Bench) -> None:
    store = Store(str(bench.place / "store"))
    context = context_of(bench.plan(), store)
    design: Any = context.design
    table = finished.scores.to_pandas()
    for attack in ("rmia", "loss"):
        own = table[(table.attack == attack) & (table.role == "target")]
        told = without_pairs(design, case_at(context, 0), attack)
        areas = told[0]["auc"] if told else []
        assert len(areas) == (3 if attack == "rmia" else 0) and (jackknife_variance(areas) > 0) == bool(areas)
        row = row_of(finished, "table", attack=attack)
        assert (row["auc"], row["auc_low"], row["auc_high"]) == area_interval(own.score, own.member, areas)
        assert (row["pools"], row["targets"], row["null_models"], row["members"]) == (1, 1, 0, 60)
    assert SAYS in finished.document["notes"] and finished.document["epsilons"] == []


def test_own_models_are_the_positive_control_and_say_what_attacks_can_see(finished: Result) -> None:
    table = finished.scores.to_pandas()
    for attack in ("rmia", "label_gap"):
        own = table[(table.attack == attack) & (table.role == "own")]
        row = row_of(finished, "own", attack=attack)
        areas = [auc(each.score, each.member) for _, each in own.groupby("target")]
        assert row["auc"] == pytest.approx(np.mean(areas)) and row["auc_low"] < row["auc"]
        assert row["found_fpr"] == pytest.approx(own[~own.member]["decision_0.2"].mean())
        assert sorted(own[~own.member].point_id) == sorted(set(own.point_id))
    assert row_of(finished, "own", attack="rmia")["auc_low"] > 0.5
    assert row_of(finished, "table", attack="rmia")["auc_low"] > 0.5
    assert not finished.document["blind"][0]["differ"]
    assert [row["group"] for row in finished.document["fit"]] == ["target", "own", "shadow"]


def test_members_that_differ_by_what_they_are_are_told_of(bench: Bench) -> None:
    labels = load("digits").labels
    lower = np.flatnonzero(labels < 5)
    np.save("lower.npy", np.random.default_rng(0).permutation(lower)[:MEMBERS])
    plan = bench.plan(target__members="lower.npy", target__by_chance=True, recipe__epochs=1, **ALONE)
    document = audited(plan, bench.place / "lower").document
    assert document["blind"][0]["auc"] > 0.6 and document["blind"][0]["differ"] and document["epsilons"] == []
    assert any("control failed: members without the model" in line for line in document["warnings"])
    headline = kind_named("mia").headline
    said = failures(gates_of(["auc=0.999"], headline, plan), headline, plan, document)
    assert any("inconclusive: " in line and "control members without the model" in line for line in said), said


def test_members_that_stand_out_the_other_way_round_are_no_all_clear(bench: Bench, finished: Result) -> None:
    document, plan, result = finished.document, bench.plan(), MiaRun.of(finished.document).result
    lower = replace(result.table[0].auc, value=0.3)
    turned = judge(replace(result, table=tuple(replace(row, auc=lower, auc_p_holm=0.01) for row in result.table)))
    (line,) = failures(gates_of(["auc=0.9"], HEADLINE, plan), HEADLINE, plan, turned.document())
    assert "inconclusive" in line and "control direction of scores: Members stand out the other way round" in line
    assert turned.verdict is not None and turned.verdict.level == "cannot be told"
    states = {each.name: each.state for each in turned.verdict.controls}
    assert states["direction of scores"] == "failed"
    states = {each["name"]: each["state"] for each in document["verdict"]["controls"]}
    assert states["direction of scores"] == "held"


def test_a_list_that_does_not_name_the_training_points_is_no_all_clear(bench: Bench, finished: Result) -> None:
    members = np.loadtxt("members.txt", dtype=np.int64)
    others = np.setdiff1d(np.random.default_rng(6).permutation(1797)[:160], members)[:MEMBERS]
    np.savetxt("others.txt", others, fmt="%d")
    np.savetxt("rest.txt", np.setdiff1d(np.arange(1797), np.union1d(members, others)), fmt="%d")
    plan = bench.plan(target__members="others.txt", target__non_members="rest.txt", recipe__epochs=80, **ALONE)
    document = audited(plan, bench.place / "others").document
    assert not any(row["above_chance"] for row in document["table"])
    for result, state in ((document, "failed"), (finished.document, "held")):
        (control,) = [each for each in result["verdict"]["controls"] if each["name"] == "agreement with own models"]
        assert control["state"] == state
    assert document["verdict"]["level"] == "cannot be told"
    (line,) = failures(gates_of(["auc=0.9"], HEADLINE, plan), HEADLINE, plan, document)
    assert "inconclusive" in line and "target.members does not name its training points" in line


@pytest.mark.parametrize(
    ("given", "own", "said"),
    [
        ([("rmia", 0.51, 0.47, 0.55)], [("rmia", 0.63, 0.59, 0.67)], "AUC 0.510 [0.470, 0.550] by rmia, those of own"),
        ([("rmia", 0.56, 0.49, 0.63)], [("rmia", 0.63, 0.59, 0.67)], ""),
        ([("rmia", 0.55, 0.52, 0.58)], [("rmia", 0.63, 0.59, 0.67)], "target.members"),  # recognised, but less
        ([("rmia", 0.75, 0.71, 0.79)], [("rmia", 0.63, 0.59, 0.67)], "more than membership"),
        ([("rmia", 0.75, 0.67, 0.83)], [("rmia", 0.63, 0.59, 0.67)], ""),  # one point in common
        ([("rmia", 0.66, 0.62, 0.7)], [("rmia", 0.52, 0.49, 0.55)], "more than membership"),  # nothing is seen in own
        ([("rmia", 0.51, 0.47, 0.55)], [("rmia", 0.52, 0.49, 0.55)], ""),
        ([("loss", 0.51, 0.47, 0.55)], [("rmia", 0.63, 0.59, 0.67)], None),
        ([("rmia", None, None, None)], [("rmia", 0.63, 0.59, 0.67)], None),
        # the judge decides, and where it has no result the attack that sees most
        ([("rmia", 0.6, 0.56, 0.64), ("loss", 0.5, 0.46, 0.54)],
         [("rmia", 0.6, 0.56, 0.64), ("loss", 0.7, 0.66, 0.74)], ""),
        ([("lira", 0.6, 0.56, 0.64), ("loss", 0.5, 0.46, 0.54)],
         [("lira", 0.6, 0.56, 0.64), ("loss", 0.7, 0.66, 0.74)], "0.500 [0.460, 0.540] by loss"),
    ],
)  # fmt: skip
def test_members_stand_out_as_those_of_own_models(given: list[Told], own: list[Told], said: str | None) -> None:
    found = unlike_own("rmia", given, own)
    assert (found or "").find(said or "") >= 0 and (found is None) == (said is None) and bool(found) == bool(said)


def test_a_bound_on_epsilon_wants_the_word_that_chance_chose_the_members(bench: Bench, finished: Result) -> None:
    plan = bench.plan(target__by_chance=True, audit__attacks=["rmia", "loss"])
    document = audited(plan, bench.place / "chance").document
    assert {(row["attack"], row["pairs"]) for row in document["epsilons"]} == {("rmia", 60), ("loss", 60)}
    assert all(row["null_epsilon"] is None for row in document["epsilons"])
    assert document["population"]["trained"] == 0


@pytest.mark.long
def test_workers_need_no_files_and_give_the_same_bits(
    finished: Result, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("weights.pt", "members.txt"):
        (tmp_path / name).write_bytes((bench.place / name).read_bytes())
    monkeypatch.chdir(tmp_path)

    def gone(*args: Any, **kwargs: Any) -> None:
        for name in ("weights.pt", "members.txt"):
            Path(name).unlink(missing_ok=True)
        two_in_turn(*args, **kwargs)

    take_turns(monkeypatch, gone)
    plan = load_plan(
        str(bench.place / "plan.yaml"),
        values={"compute.workers": 2, "compute.store": str(tmp_path / "s"), "audit.attacks": ["rmia"]},
    )
    again = audited(plan, tmp_path / "out")
    assert again.scores.equals(finished.scores.filter(pc.field("attack") == "rmia"))
    assert not Path("weights.pt").exists()
    resolved = load_plan(str(tmp_path / "out" / "plan.yaml"), values={"compute.workers": 0})
    assert audited(resolved, tmp_path / "third").document["population"]["trained"] == 0


def test_another_file_is_another_target_and_trains_no_shadow_anew(bench: Bench, finished: Result) -> None:
    def keys(stage: str, **changes: Any) -> set[str]:
        return {job.key for job in open_design(bench.plan(**changes)).jobs() if job.stage == stage}

    state = torch.load("weights.pt")
    torch.save({name: each * 1.01 for name, each in state.items()}, "other.pt")
    other = {"target__weights": "other.pt"}
    assert keys("train", **other) == keys("train") and not keys("ask", **other) & keys("ask")
    Path("members.csv").write_text("id\n" + "\n".join(Path("members.txt").read_text().split()[1:]))
    assert not keys("train", target__members="members.csv") & keys("train")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"split.canaries": 5}, "split.canaries is 5, but a given model cannot be taught wrong labels"),
    ({"split.pools": 3}, "split.pools is 3, but a given model has one pool"),
    ({"split.shadows": 4}, "split.shadows is 4; attack rmia needs 6 or more"),
    ({"audit.fpr": [0.1]}, "audit.fpr 0.1 cannot be resolved by 60 points"),
    ({"data.groups": "groups.txt"}, 'data.groups is "groups.txt", but whether whole groups were members'),
    ({"split.test": 1716}, "target: 80 members and 1717 known non-members, 1716 of which are test points"),
]


@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_what_a_target_does_not_go_with_is_refused_in_a_line(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_against_data(load_plan("plan.yaml", values=change))
    assert said in str(caught.value)


def test_members_of_classes_that_take_no_part_are_refused(bench: Bench) -> None:
    with pytest.raises(BadInput, match=r"classes that split\.classes leaves out"):
        open_design(bench.plan(split__classes="even")).jobs()


def test_the_command_the_page_and_the_gate(
    bench: Bench, finished: Result, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    draw_only(monkeypatch, "none")
    kind_named("mia").open_page().write(bench.place / "out", None)
    page = (bench.place / "out" / "report.html").read_text("utf-8")
    assert SAYS in page and "without the model" in page and "null models" not in page.split("</section>")[0]
    head = ["audit", "mia", "plan.yaml", "--workers", "0", "--store", "store", "--out", "again", "--json"]
    gate = ["--set", f"tracking.uri=sqlite:///{bench.place}/mlflow.db", "--fail-above", "rmia.auc=0.51"]
    assert main([*head, *gate]) == 1
    assert json.loads(capsys.readouterr().out)["table"] == finished.document["table"]
    assert main(["compare", "out", "again"]) == 0 and main(["score", "out/scores.parquet"]) == 0


def test_own_models_that_fit_otherwise_are_no_control_of_a_model_whose_members_look_like_test_points(
    finished: Result, bench: Bench
) -> None:
    fits = [read_row(FitRow, row, "fit") for row in finished.document["fit"]]
    (target,) = (row for row in fits if row.group == "target")
    assert unlike_fits(fits) == []
    wrong = [replace(target, train_accuracy=target.test_accuracy) if row is target else row for row in fits]
    (line,) = unlike_fits(wrong)
    assert "either target.members does not name its training points, or the recipe is not its own" in line
    result = MiaRun.of(finished.document).result
    for found, state in ((result, "held"), (judge(replace(result, fit=tuple(wrong))), "failed")):
        (fit,) = [each for each in found.controls if each.name == "fit of own models"]
        assert (fit.state, fit.protects, fit.lines) == (state, "null results", "all")
        assert (fit.why == f"{capital(line)}.") == (state == "failed")
