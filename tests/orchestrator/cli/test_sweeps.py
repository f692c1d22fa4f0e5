"""Sweeps in files and on the command line: run, gone on with, copied, priced, and refused in a line before any work."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from audits.errors import BadInput
from orchestrator.cli.main import main
from orchestrator.cli.session import Session
from orchestrator.cli.submit import start
from orchestrator.cli.submitted_work import read_command
from orchestrator.cli.sweeps import FIELDS, fields_of
from orchestrator.engine.plan.base import require_deciding
from orchestrator.engine.plan.sweep_files import parse_spec, sweep_named
from orchestrator.engine.run.choice import choice_of
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named, load_plan
from orchestrator.report.result import SettingRow
from orchestrator.report.swept import Axes, panels
from tests.cases.families import family
from tests.cases.runs import draw_only
from tests.orchestrator.toy.kind import KIND as TOY
from tune_spaces import SWEEPS

EPSILON = "audit.search.epsilon"
TINY = (
    "split.targets=1", "split.shadows=4", "split.train_size=60", "split.forget=0.5", "split.target_pool=120",
    "split.candidates={forget: 12, unseen: 20}", "recipe.epochs=1", "unlearning.1.epochs=1", "audit.fpr=[0.5]",
    "audit.search.steps=1", "audit.attacks=[apollo]", "compute.workers=0",
)  # fmt: skip
FILE = {"base": "apollo-smoke", "space": {EPSILON: {"loguniform": [0.02, 1.0]}}, "samples": 3}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCH_STORE", str(tmp_path / "store"))
    return tmp_path


def written(name: str = "mine.yaml", **fields: object) -> str:
    Path(name).write_text(yaml.safe_dump({**FILE, **fields}, sort_keys=False))
    return name


def sets(*changes: str) -> list[str]:
    return [word for change in changes for word in ("--set", change)]


@pytest.mark.long
def test_three_values_are_one_table_one_panel_and_three_nested_runs_over_models_trained_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    draw_only(monkeypatch, "sweep")
    assert main(["sweep", "--vary", f"{EPSILON}=0.02,0.05,0.1", "apollo-smoke", *sets(*TINY)]) == 0
    out = place / "runs" / "vary-epsilon"
    document = json.loads((out / "result.json").read_text())
    names = ["epsilon=0.02", "epsilon=0.05", "epsilon=0.1"]
    assert [row["setting"] for row in document["settings"]] == names
    assert {row["setting"] for row in document["table"]} == set(names)
    assert list((out / "figures").glob("sweep*.svg")) and "ε (radius per step)" in (out / "report.html").read_text()
    # a target with 4 shadows and 2 offline ones, whatever the number of settings
    store = Store(str(place / "store"))
    assert len(store.keys("train")) == document["population"]["models"] - len(store.keys("unlearn")) == 7
    client = MlflowClient(tracking_uri=f"sqlite:///{out}/mlflow.db")
    (experiment,) = [str(each.experiment_id) for each in client.search_experiments() if each.name == "orch"]
    children = client.search_runs([experiment], "tags.`orch.level` = 'setting'")
    logged = {child.info.run_name: child.data.params[EPSILON] for child in children}
    assert logged == {name: name.removeprefix("epsilon=") for name in names}

    every = client.search_runs([experiment])
    capsys.readouterr()
    assert main(["sweep", "--resume", "--out", str(out)]) == 0
    assert {run.info.run_id for run in client.search_runs([experiment])} == {run.info.run_id for run in every}
    again = json.loads((out / "result.json").read_text())
    assert again["table"] == document["table"] and again["population"]["trained"] == 0
    assert main(["sweep", "--vary", f"{EPSILON}=0.02", "apollo-smoke", *sets(*TINY), "--out", str(out)]) == 2
    assert "holds the run of another sweep" in capsys.readouterr().err

    monkeypatch.chdir(out)
    repeated = "orch sweep sweep.yaml plan.yaml --out again"
    assert f">{repeated}<" in (out / "report.html").read_text()
    assert main(repeated.split()[1:]) == 0
    repeat = json.loads((out / "again" / "result.json").read_text())
    assert repeat["table"] == document["table"] and repeat["population"]["trained"] == 0


REFUSED = [
    (["sweep", "--vary", f"{EPSILON}n=0.02", "apollo-smoke"], "(did you mean 'epsilon'?)"),
    (["sweep", "--vary", f"{EPSILON}=0,0.1", "apollo-smoke"], "setting epsilon=0: audit.search.epsilon is 0"),
    (["sweep", "--vary", f"{EPSILON}=loguniform(1, 0.02)", "apollo-smoke"], "lower bound 1 is not below"),
    (["sweep", "--vary", f"{EPSILON}=lguniform(0.02, 1)", "apollo-smoke"], "(did you mean 'loguniform'?)"),
    (["sweep", "--vary", f"{EPSILON}=loguniform(0.1", "apollo-smoke", "--samples", "2"],
     f"--vary {EPSILON}: 'loguniform(0.1' cannot be read: its closing bracket is missing; write it as "
     "loguniform(…, …)"),
    (["sweep", "--vary", f"{EPSILON}=lguniform(0.1, 1", "apollo-smoke"], "its closing bracket is missing"),
    (["sweep", "--vary", f"{EPSILON}=uniform[0.1, 1]", "apollo-smoke"], "its arguments stand in round brackets"),
    (["sweep", "--vary", f"{EPSILON}=uniform 0.1, 1)", "apollo-smoke"], "its arguments stand in round brackets"),
    (["sweep", "--vary", f"{EPSILON}=uniform(0.1, 1),2", "apollo-smoke"], "something follows its closing bracket"),
    (["sweep", "--vary", "compute.workers=0,1", "apollo-smoke"],
     "compute.workers changes no result, so settings cannot differ in it; set it for all of them: --set "
     "compute.workers=…"),
    (["sweep", "--vary", "tracking.uri=a,b", "apollo-smoke"], "tracking.uri changes no result"),
    (["tune", "apollo", "--vary", "compute.store=a,b", "apollo-smoke", "--metric", "gradient_ascent.apollo.auc"],
     "compute.store changes no result"),
    (["cost", "--vary", "tracking={uri: a}", "apollo-smoke"], "tracking changes no result"),
    (["sweep", "--vary", "compute={workers: 1}", "apollo-smoke"], "compute is varied as a whole; vary single fields"),
    (["sweep", "--vary", f"{EPSILON}", "apollo-smoke"], "write it as path=value,value"),
    (["sweep", "--vary", f"{EPSILON}=0.1", "apollo-smok"], "(did you mean 'apollo-smoke'?)"),
    (["sweep", "--vary", f"{EPSILON}=0.1", "a", "apollo-smoke"], "leave out a or apollo-smoke"),
    (["sweep", "--vary", f"{EPSILON}=0.1", "apollo-smoke", "--metric", "gradient_ascend.apollo.auc"],
     "(did you mean 'gradient_ascent.apollo.auc'?)"),
    (["sweep", "apollo-ablation", "--samples", "3"], "follows its plan and takes no samples"),
    (["sweep", "mine.yml"], "no sweep file 'mine.yml' (did you mean 'mine.yaml'?)"),
    (["sweep"], "no sweep is named"),
    (["sweep", "--resume"], "name the sweep, or the folder"),
    (["cp", "apollo-ablation", "x.yaml"], "follows its plan and is no file"),
    (["cp", "mia-epoch", "x.yaml"], "(did you mean 'mia-epochs'?)"),
]  # fmt: skip


SEEDS = ("1,,2", "1,", "", "1;2", "a", "1.5", "[1, 2]", "1 2")


@pytest.mark.parametrize("seeds", SEEDS)
def test_seeds_are_whole_numbers_with_commas_between_them(
    seeds: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "--vary", f"{EPSILON}=0.1", "apollo-smoke", "--seeds", seeds]) == 2
    said = capsys.readouterr().err
    assert f"--seeds {seeds!r}: give whole numbers with commas between them, e.g. --seeds 0,1,2" in said
    assert said.count("\n") == 1


EQUAL = {"a": {EPSILON: 0.1}, "b": {EPSILON: 0.1, "seed": 0}, "c": {}, "d": {EPSILON: 0.2}}
"""Of these a, b and c are one setting where the plan has the radius 0.1 and the seed 0."""
SAME = "2 settings are equal to others in all fields and not counted: b = a, c = a"


def test_settings_that_are_equal_in_all_fields_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    file = {"base": "apollo-smoke", "settings": EQUAL}
    Path("equal.yaml").write_text(yaml.safe_dump(file))
    plan = load_plan("apollo-smoke")
    assert plan.seed == 0 and plan.audit.search.epsilon == 0.1  # type: ignore[attr-defined]  # a plan of Apollo
    assert main(["validate", "equal.yaml"]) == 0
    assert f"is valid: 2 settings of apollo-smoke; {SAME}\n" in capsys.readouterr().out
    assert main(["cost", "--sweep", "equal.yaml", "--json", "--images-per-second", "100"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"] == 2
    sweep = sweep_named("equal.yaml")
    choice = choice_of(kind_named("apollo"), sweep, plan, "gradient_ascent.apollo.auc", "max")
    assert list(choice.settings) == ["a", "d"] and choice.own == "a" and choice.same == {"b": "a", "c": "a"}


def test_a_sweep_runs_equal_settings_once_and_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw_only(monkeypatch)
    monkeypatch.setitem(KINDS, "toy", TOY.place)
    shutil.copy(TOY.default_plan, "toy.yaml")
    equal = {"a": {"recipe.epochs": 8}, "b": {"recipe.epochs": 8, "seed": 0}, "c": {}, "d": {"recipe.epochs": 2}}
    Path("equal.yaml").write_text(yaml.safe_dump({"base": "toy.yaml", "settings": equal}))
    assert main(["sweep", "equal.yaml", *sets("compute.workers=0")]) == 0
    assert SAME in capsys.readouterr().out
    out, store = place / "runs" / "equal", Store(str(place / "store"))
    document = json.loads((out / "result.json").read_text())
    assert [row["setting"] for row in document["settings"]] == ["a", "d"]
    assert {row["setting"] for row in document["table"]} == {"a", "d"}
    assert len(store.keys("train")) == document["population"]["models"] == 6, "three targets for each setting"
    assert main(["sweep", "--resume", "--out", str(out)]) == 0
    again = json.loads((out / "result.json").read_text())
    assert again["table"] == document["table"] and again["population"]["trained"] == 0


def test_the_help_of_tune_has_the_options_that_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"--{name}" in said for name in ("vary", "samples", "search", "search-seed", "metric", "mode"))
    for option in ("--scheduler", "--seeds", "--seconds", "--at-a-time"):
        assert option not in said
        assert main(["tune", "apollo", "--vary", f"{EPSILON}=0.1", option, "1"]) == 2
        assert f"No such option '{option}'" in capsys.readouterr().err
    assert "optuna" not in said and "asha" not in said


def test_exactly_the_fields_that_a_plan_does_not_depend_on_cannot_be_varied() -> None:
    plan = load_plan("apollo-smoke", ["compute.workers_per_model=2", "compute.workers=2"])
    others = {
        "workers": 4, "device": "cpu", "gpu": "A", "tf32": True, "gpus_per_worker": 1.0, "cpus_per_worker": 2.0,
        "engine": "train", "head": True, "threads": 2, "chunk": 5, "address": "auto", "store": "x",
        "checkpoint_minutes": 1.0, "record_steps": False, "workers_per_model": 1, "sync_batch_norm": False,
    }  # fmt: skip
    assert others.keys() == type(plan.compute).model_fields.keys()
    for name, value in others.items():
        same = plan.changed({f"compute.{name}": value}).plan_hash == plan.plan_hash
        try:
            require_deciding(f"compute.{name}")
        except BadInput:
            assert same, name
        else:
            assert not same, name
    require_deciding("data.name")
    require_deciding("split.shadows")


def test_texts_that_begin_like_a_primitive_are_values() -> None:
    assert parse_spec("recipe.schedule=constant,cosine") == ("recipe.schedule", ["constant", "cosine"])
    assert parse_spec("a.b=lr(1") == ("a.b", ["lr(1"])
    assert fields_of({**dict.fromkeys(FIELDS), "seeds": "0, 1,-2"}) == {"seeds": [0, 1, -2]}


@pytest.mark.parametrize(("words", "line"), REFUSED, ids=lambda value: " ".join(value)[:60])
def test_a_command_that_cannot_work_is_refused_in_a_line(
    words: list[str], line: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert line in said and said.count("\n") == 1
    assert not (place / "runs").exists()


FILES = [
    ({"base": "apollo-smok"}, "(did you mean 'apollo-smoke'?)"),
    ({"space": {EPSILON: {"choice": [0.1], "when": {"audit.search.nrm": "l2"}}}}, "is not in the space"),
    ({"search": "optuna", "metric": "retrain.apollo.auc", "space": {"compute.head": [True, False]}},
     "compute.head changes no result"),
    ({"search": "optuna", "metric": "apollo.auc"}, "metric 'apollo.auc' is no number of this audit"),
    ({"search": "optuna", "metric": "retrain.apollo.auc", "space": {EPSILON: {"uniform": [0, 1]}}},
     "setting epsilon=0: audit.search.epsilon is 0"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "line"), FILES)
def test_a_file_that_cannot_work_is_refused_by_validate(
    fields: dict[str, object], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", written(**fields)]) == 2
    assert line in capsys.readouterr().err


def test_a_searcher_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["sweep", written(search="optuna", metric="retrain.apollo.auc")]) == 2
    assert "pip install 'orch-audit[tune]'" in capsys.readouterr().err
    assert not Path("runs").exists()


@family("command", [("validate",), ("cost", "--sweep"), ("sweep",)], default=(2,))
def test_a_searcher_that_cannot_be_imported_is_refused_like_a_missing_one(
    command: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "broken" / "optuna").mkdir(parents=True)
    (place / "broken" / "optuna" / "__init__.py").write_text("raise ImportError('libstdc++ is too old')")
    monkeypatch.syspath_prepend(place / "broken")
    for name in [each for each in sys.modules if each.partition(".")[0] == "optuna"]:
        monkeypatch.delitem(sys.modules, name)
    assert main([*command, written(search="optuna", metric="retrain.apollo.auc")]) == 2
    said = capsys.readouterr().err
    assert "cannot be imported (libstdc++ is too old): pip install 'orch-audit[tune]'" in said
    assert said.count("\n") == 1 and not Path("runs").exists()


def test_files_are_validated_and_copied(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", written()]) == 0
    assert "mine.yaml is valid: 3 settings of apollo-smoke" in capsys.readouterr().out
    assert main(["validate", written(samples=1)]) == 0
    assert "mine.yaml is valid: 1 setting of apollo-smoke" in capsys.readouterr().out
    assert main(["cp", "apollo-dropout", "copy.yaml"]) == 0
    assert Path("copy.yaml").read_text() == SWEEPS["apollo-dropout"].text


class Server:
    """As much of a job server as ``start`` asks for: keeps what it is sent."""

    def submit(self, name: str, command: str, folder: Path, variables: dict[str, str]) -> None:
        self.text = (folder / "mine.yaml").read_text()


def test_a_file_travels_with_its_job_and_varied_fields_as_words(place: Path) -> None:
    store = ("--store", "s3://bucket/store")
    work = read_command(Session(), ["sweep", written(), *store])
    assert (work.words[:2], work.sweep, work.out) == (("sweep", "./mine.yaml"), Path("mine.yaml"), Path("runs/mine"))
    server = Server()
    start(server, work)  # type: ignore[arg-type]  # see Server
    assert server.text == Path("mine.yaml").read_text()
    vary = ("--vary", f"{EPSILON}=0.02,0.05")
    work = read_command(Session(), ["sweep", *vary, "apollo-smoke", *store])
    assert work.sweep is None and work.source is None and work.out == Path("runs/vary-epsilon")
    sent = read_command(Session(), [*work.words])
    assert sent.plan.plan_hash == work.plan.plan_hash and sent.out == work.out
    assert main(["cp", "apollo-smoke", "plan.yaml"]) == 0
    work = read_command(Session(), ["sweep", written(base="plan.yaml"), *store])
    assert work.source == "plan.yaml" and "plan.yaml" in work.words


def test_seeds_of_settings_are_repetitions_and_no_axis() -> None:
    plan = {"seed": 0, "audit": {"search": {"epsilon": 0.1}}}
    rows = [
        SettingRow(setting=f"epsilon={width:g}, seed={seed}", overrides={EPSILON: width, "seed": seed})
        for width in (0.1, 0.2)
        for seed in (0, 1)
    ]
    assert panels(plan, rows, rows[0].setting, Axes()) == []
    rows = [SettingRow(setting=f"epsilon={width:g}", overrides={EPSILON: width}) for width in (0.2, 0.1)]
    assert [panel.values for panel in panels(plan, rows, rows[0].setting, Axes())] == [(0.1, 0.2)]
