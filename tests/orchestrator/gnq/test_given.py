"""GNQ of a model that a plain PyTorch loop trained: its numbers, its files in the store, what is refused, its page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from audits.data.catalogue import load
from audits.statistics.roc import auc
from audits.uniqueness.bits import log_uniqueness, trapezoid_weights
from audits.uniqueness.scores import gradient_uniqueness
from orchestrator.cli.main import main
from orchestrator.engine.run.run import Result, Run
from orchestrator.engine.store.payloads import pack_table
from orchestrator.gnq.given.judging import judge
from orchestrator.gnq.given.kind import KIND
from orchestrator.gnq.given.rows import GivenResult
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import load_plan, open_design
from orchestrator.report.result import run_of
from tests.cases.runs import UnshownRun, audited, draw_only, take_turns, two_in_turn

MEMBERS = range(40, 100)
HIDDEN, STEPS = 8, (0, 30, 60)
PLAN = """
audit: {kind: gnq}
model:
  name: mlp
  settings: {hidden: [8]}
target:
  weights: weights.pt
  members: members.txt
"""


def own_loop(folder: Path) -> nn.Module:
    """Train a network as anybody might, and leave weights, checkpoints and ids; nothing of this project takes part."""
    data = load("fashion14")
    x, y = torch.from_numpy(np.array(data.inputs[MEMBERS])).float() / 255, torch.from_numpy(data.labels[MEMBERS].copy())
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(196, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for step in range(STEPS[-1] + 1):
        if step in STEPS:
            torch.save({"step": step, "state_dict": net.state_dict()}, folder / f"step-{step}.pt")
        if step < STEPS[-1]:
            optimiser.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimiser.step()
    torch.save(net.state_dict(), folder / "weights.pt")
    save_file(net.state_dict(), folder / "weights.safetensors")
    (folder / "members.txt").write_text("".join(f"{point}\n" for point in MEMBERS))
    (folder / "plan.yaml").write_text(PLAN)
    return net.eval()


@dataclass(frozen=True)
class Bench:
    """A folder with somebody's model in it, and a store."""

    place: Path
    net: nn.Module

    def plan(self, **changes: Any) -> Any:
        named = {"compute.workers": 0, "compute.store": str(self.place / "store")}
        return load_plan("plan.yaml", values=named | {name.replace("__", "."): each for name, each in changes.items()})

    def run(self, out: str, **changes: Any) -> Result:
        return audited(self.plan(**changes), self.place / out)

    def command(self, *words: str) -> int:
        return main([*words, "--workers", "0", "--store", str(self.place / "store")])


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    place = tmp_path_factory.mktemp("given")
    return Bench(place, own_loop(place))


@pytest.fixture(autouse=True)
def there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the model lies, as its owner does."""
    monkeypatch.chdir(bench.place)


@pytest.fixture(scope="module")
def finished(bench: Bench) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(bench.place)
        return bench.run("first")


def group(result: Result, name: str = "members") -> Any:
    table = result.scores.to_pandas()
    return table[table.group == name].reset_index(drop=True)


def test_numbers_are_those_of_the_library_on_the_module_itself(finished: Result, bench: Bench) -> None:
    data = load("fashion14")
    members, controls = group(finished), group(finished, "controls")
    assert members.point_id.tolist() == list(MEMBERS)
    assert len(controls) == len(members) and not set(controls.point_id) & set(MEMBERS)
    for found in (members, controls):
        points = data.tensors(found.point_id.to_numpy())
        for column, mode in (("uniqueness", "ridge"), ("uniqueness_diagonal", "diagonal")):
            expected = gradient_uniqueness(bench.net, points, mode, chunk=128)
            np.testing.assert_allclose(found[column], expected, rtol=1e-6, err_msg=mode)
        x, y = points.all()
        answers = bench.net(x.float() / 255 if x.dtype == torch.uint8 else x).detach()
        np.testing.assert_allclose(found.loss, F.cross_entropy(answers, y, reduction="none"), rtol=1e-4, atol=1e-6)
        assert (found.correct.to_numpy() == (answers.argmax(1) == y).numpy()).all()
        bits = log_uniqueness(found.uniqueness.to_numpy()[None])
        np.testing.assert_array_equal(found["log_uniqueness"], bits)
        assert found.log_uniqueness[found["rank"].sub(1).argsort()].is_monotonic_decreasing
    assert members.loss.median() < controls.loss.median()


def test_result_is_what_the_scores_say(finished: Result) -> None:
    document, members, controls = finished.to_json(), group(finished), group(finished, "controls")
    assert (document["kind"], document["name"]) == ("gnq-target", "gnq-target-audit")
    for row, found, of in zip(
        document["table"], (members, controls), (len(MEMBERS), 70_000 - len(MEMBERS)), strict=True
    ):
        exposed = found.uniqueness / (1 + found.uniqueness) >= 0.75
        assert (row["points"], row["of"], row["exposed_points"]) == (len(found), of, exposed.sum())
        assert row["uniqueness"] == pytest.approx(found.uniqueness.median())
        assert row["accuracy"] == pytest.approx(found.correct.mean())
    separation = {row["score"]: row["auc"] for row in document["separation"]}
    lower = -np.concatenate([members.loss, controls.loss])
    assert separation["loss"] == pytest.approx(auc(lower, [True] * len(members) + [False] * len(controls)))
    assert separation["loss"] > 0.6
    assert [row["point_id"] for row in document["points"]] == members.sort_values("rank").point_id[:12].tolist()
    assert sum(row["points"] for row in document["classes"]) == len(members)
    assert document["population"] == {"models": 0, "reused": 0, "trained": 0}


def test_other_files_of_the_same_weights_give_the_same_bytes_and_nothing_is_done_again(
    finished: Result, bench: Bench
) -> None:
    stored = sorted((bench.place / "store").rglob("*.parquet"))
    for file in ("weights.safetensors", "step-60.pt"):
        again = bench.run("again", target__weights=file)
        assert pack_table(again.scores) == pack_table(finished.scores)
    assert sorted((bench.place / "store").rglob("*.parquet")) == stored


def test_an_edited_file_of_weights_or_members_is_another_target(
    finished: Result, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    own_loop(tmp_path)
    assert pack_table(bench.run("edited").scores) == pack_table(finished.scores)
    state = torch.load("weights.pt", weights_only=True)
    state["3.bias"][0] += 0.5
    torch.save(state, "weights.pt")
    edited = bench.run("edited")
    assert (group(edited).uniqueness != group(finished).uniqueness).all()
    assert edited.document["targets"][0]["digests"] != finished.document["targets"][0]["digests"]
    others = [*MEMBERS[1:], 7]  # as many
    Path("members.txt").write_text("".join(f"{point}\n" for point in others))
    assert group(bench.run("edited")).point_id.tolist() == sorted(others)


def test_two_workers_that_do_not_see_the_files_change_no_bit(
    finished: Result, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def elsewhere(*arguments: Any, **named: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            two_in_turn(*arguments, **named)

    take_turns(monkeypatch, elsewhere)
    other = bench.run("two", compute__workers=2, compute__store=str(bench.place / "other"))
    assert pack_table(other.scores) == pack_table(finished.scores)


@pytest.mark.long
def test_checkpoints_add_up_along_the_training(finished: Result, bench: Bench) -> None:
    files = [f"step-{step}.pt" for step in STEPS]
    along = bench.run("along", target__weights=files, target__steps=list(STEPS))
    each = [group(bench.run("along-one", target__weights=file)).uniqueness.to_numpy() for file in files]
    bits = log_uniqueness(np.stack(each), trapezoid_weights(STEPS))
    found = group(along)
    np.testing.assert_array_equal(found.log_uniqueness, bits)
    np.testing.assert_array_equal(found.uniqueness, each[-1])
    np.testing.assert_array_equal(np.argsort(found["rank"]), np.argsort(-bits, kind="stable"))
    once = bench.run("along-once", target__weights=files)
    np.testing.assert_array_equal(group(once).log_uniqueness, log_uniqueness(np.stack(each)))
    assert any("target.steps is not given" in line for line in once.document["warnings"])


def test_controls_are_no_members(bench: Bench) -> None:
    design: Any = open_design(bench.plan(target__members="0:69995", audit__points=20))
    assert design.scored(design.members, "controls").tolist() == list(range(69995, 70000))
    assert set(design.scored(design.members, "members")) <= set(range(69995))


def test_samples_and_controls_are_drawn_by_the_seed(bench: Bench) -> None:
    some = bench.run("some", audit__points=20, audit__controls=10)
    members, controls = group(some), group(some, "controls")
    assert len(members) == 20 and set(members.point_id) <= set(MEMBERS) and len(controls) == 10
    said = " ".join(some.document["warnings"])
    assert "20 of 60 training points are scored" in said and "10 controls for 20 members" in said
    other = bench.run("some-other", audit__points=20, audit__controls=0, seed=1)
    assert set(group(other).point_id) != set(members.point_id)
    assert not len(group(other, "controls")) and not other.document["separation"]
    assert any("there are no controls" in line for line in other.document["warnings"])


def turned_off(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights of a model that is far too sure of one class."""
    return {**state, "3.bias": 1e5 * torch.eye(10)[0]}


def wrong_classes(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights whose classes stand in another order."""
    return {**state, "3.weight": state["3.weight"].roll(1, 0), "3.bias": state["3.bias"].roll(1, 0)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (turned_off, ["below the rounding of float32 weights"]),
        (wrong_classes, ["of its own training points right: does it see", "do not have smaller losses than points"]),
    ],
)
def test_weights_that_say_little_are_said(
    bench: Bench, tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], said: list[str]
) -> None:
    torch.save(change(bench.net.state_dict()), tmp_path / "w.pt")
    found = " ".join(bench.run("little", target__weights=str(tmp_path / "w.pt")).document["warnings"])
    assert all(text in found for text in said)


def test_members_that_are_learnt_less_than_others_are_no_all_clear(finished: Result, bench: Bench) -> None:
    swapped = [{**row, "auc": 0.3, "auc_low": 0.2, "auc_high": 0.4} for row in finished.document["separation"]]
    document = judge(run_of({**finished.document, "separation": swapped}, GivenResult)).document()
    verdict = document["verdict"]
    assert verdict["level"] == "cannot be told"
    (control,) = verdict["controls"]
    assert (control["name"], control["state"]) == ("members are learnt", "failed")
    (line,) = failures(gates_of(["exposed=0.99"], KIND.headline, bench.plan()), KIND.headline, bench.plan(), document)
    assert "inconclusive: control members are learnt: The model’s loss is larger" in line
    assert finished.document["verdict"]["controls"][0]["state"] == "held"
    none = judge(run_of({**finished.document, "separation": []}, GivenResult)).document()
    assert [each["state"] for each in none["controls"]] == ["missing"]
    (line,) = failures(gates_of(["exposed=0.99"], KIND.headline, bench.plan()), KIND.headline, bench.plan(), none)
    assert "inconclusive: control members are learnt: not in this run" in line


def test_a_control_of_another_setting_is_noted_and_holds_the_limits_that_look_there(
    finished: Result, bench: Bench
) -> None:
    parts = {
        name: [row | {"setting": setting} for setting in ("base", "other") for row in finished.document[name]]
        for name in ("table", "separation", "classes", "points", "targets")
    }
    for row in parts["separation"]:
        row |= {"auc": 0.3, "auc_low": 0.2, "auc_high": 0.4} if row["setting"] == "other" else {}
    settings = [{"setting": "base", "overrides": {}}, {"setting": "other", "overrides": {"audit.ridge": 0.5}}]
    document = judge(run_of({**finished.document, **parts, "settings": settings}, GivenResult)).document()
    assert [(each["setting"], each["state"]) for each in document["controls"]] == [
        ("base", "held"),
        ("other", "failed"),
    ]
    (control,) = document["verdict"]["controls"]
    assert control["state"] == "held" and control["why"].endswith("Failed in 1 other setting: other.")
    assert document["verdict"]["about"].startswith("base (") and finished.document["verdict"]["about"] == ""
    levels = {(each["setting"], each["subject"]): each["why"] for each in document["verdict"]["findings"]}
    assert [key[0] for key, why in levels.items() if "a control failed" in why] == ["other", "other"]
    (line,) = failures(gates_of(["exposed=0.99"], KIND.headline, bench.plan()), KIND.headline, bench.plan(), document)
    assert "inconclusive: control members are learnt" in line


def test_a_copy_among_the_points_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("fashion14")
    doubled = np.array(data.inputs)
    doubled[41], doubled[3] = doubled[40], doubled[50]
    changed = replace(data, inputs=doubled, fingerprint="")
    monkeypatch.setattr("orchestrator.engine.run.run.data_of", lambda *_: changed)
    monkeypatch.setattr("orchestrator.engine.run.worker.data_of", lambda *_: changed)
    found = group(bench.run("copies"))
    assert found.point_id[found.copied].tolist() == [40, 41]


WRONG: dict[str, tuple[list[str], str]] = {
    "no weights": (["target.weights=no.pt"], "no.pt cannot be read: No such file"),
    "other settings": (["model.settings.hidden=[9]"], "weights.pt does not fit the architecture of the section model"),
    "other model": (["model={name: cnn}"], "of 8 tensors 6 missing (0.weight"),
    "weights": (["target.weights=5"], "target.weights is 5; allowed: a file, or a list of files"),
    "members": (["target.members=0:80000"], "target.members is 0:80000, but the data set has 70000 points"),
    "unread": (["split.pools=2"], "split is given, but with a target nothing is trained"),
    "diagonal first": (["audit.modes=[diagonal]"], "audit.modes.0 is diagonal, and the first mode ranks the points"),
    "mode": (["audit.modes=[rige]"], "did you mean 'ridge'"),
    "steps": (["target.steps=[1]"], "target.steps has 1 numbers for 1 checkpoints"),
    "falling": (["target={weights: [a.pt, b.pt], members: all, steps: [2, 1]}"], "steps of checkpoints rise"),
    "twice": (["target={weights: [a.pt, a.pt], members: all}"], "'a.pt' is listed 2 times"),
    "no members": (["target={weights: weights.pt}"], "target.members is missing"),
    "attacks": (["audit.attacks=[lira]"], "audit.attacks is not a field"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_with_one_line(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    changes, said = WRONG[what]
    assert main(["validate", "plan.yaml", *(word for change in changes for word in ("--set", change))]) == 2
    assert said in capsys.readouterr().err


def test_command_line_without_a_plan(
    finished: Result, bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "distribution")
    monkeypatch.setattr(Run, "track", UnshownRun.track)
    words = ["audit", "gnq", "--target", "weights.pt", "--members", "members.txt", "--set", "model.settings.hidden=[8]",
             "--set", "tracking.uri=sqlite:///mlflow.db", "--out", "shown"]  # fmt: skip
    assert bench.command(*words, "--json", "--fail-above", "exposed=0.999", "--fail-above", "members.exposed=0.0") == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["table"] == json.loads(Path("shown/result.json").read_text())["table"]
    assert "Verdict: " in told.err and "of 60 (" in told.err and "stand out by their gradients" in told.err
    assert "gate members.exposed=0.0" in told.err and "gate exposed=0.999: passed" in told.err
    assert pack_table(pq.read_table("shown/scores.parquet")) == pack_table(finished.scores)
    page = Path("shown/report.html").read_text("utf-8")
    assert page.index("Exposed points") < page.index("<h2>Training points and controls")
    assert (
        page.count("data:image/png") == 12 and "orch audit gnq plan.yaml" in page and 'id="figure-distribution"' in page
    )
    Path("shown/report.html").unlink()
    assert main(["report", "shown"]) == 0 and Path("shown/report.html").read_text("utf-8") == page


def test_cost_and_validate(finished: Result, bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "plan.yaml"]) == 0
    capsys.readouterr()
    changes = ("--set", "target.members=0:100", "--set", f"compute.store={bench.place / 'store'}")
    assert main(["cost", "plan.yaml", *changes, "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert [(row["stage"], row["needed"], row["missing"]) for row in cost["stages"]] == [
        ("given", 1, 1), ("look", 2, 2), ("score", 1, 1),
    ]  # fmt: skip
    assert cost["queries"] == [] and cost["bytes"] > 0
