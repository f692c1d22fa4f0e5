"""A plan file that names code runs none of it before the user has said so."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest

from audits import credentials
from audits.credentials import mask
from audits.errors import BadInput
from audits.own.permission import asking
from orchestrator.api.report import Report
from orchestrator.cli.main import main
from orchestrator.cli.permission import Permission
from orchestrator.cli.report import thumbnails
from orchestrator.cli.session import Session
from orchestrator.cli.submitted_work import read_command
from orchestrator.engine.data import forget_data
from orchestrator.engine.plan import reach
from orchestrator.engine.plan.files import shipped_text
from orchestrator.engine.run.output_folder import refuse_other_plan
from orchestrator.engine.run.trusted import TrustedContexts
from orchestrator.kinds import kind_named, load_plan
from tests.cases.apollo_result import write_run
from tests.cases.families import family
from tests.cases.runs import draw_only

NAME = "python:hostile_points:points"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave a plan and its module, which writes a file when it is imported, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_ALLOW_CODE", raising=False)
    monkeypatch.delitem(sys.modules, "hostile_points", raising=False)
    forget_data()
    (tmp_path / "hostile_points.py").write_text(
        "from pathlib import Path\nimport numpy as np\nPath('ran').touch()\n"
        "def points():\n    return np.zeros((3000, 1, 2, 2), np.uint8), np.arange(3000) % 10\n"
    )
    plan(tmp_path)
    return tmp_path


def plan(folder: Path, root: str = "null") -> None:
    (folder / "plan.yaml").write_text(
        f"audit: {{kind: apollo, fpr: [0.5]}}\ndata: {{name: '{NAME}', root: {root}}}\n"
        "split: {targets: 1, shadows: 4, offline_shadows: 2, train_size: 60, forget: 0.5, target_pool: 120,\n"
        "        shadow_pool: 400, test_pool: 100, candidates: {forget: 12, unseen: 20}}\n"
    )


def ran() -> bool:
    return Path("ran").exists()


@pytest.mark.parametrize("command", [["validate"], ["cost"], ["audit", "apollo"], ["sweep", "apollo-ablation"]])
def test_code_of_a_plan_is_refused_in_one_line(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "plan.yaml"]) == 2
    out, err = capsys.readouterr()
    assert not ran() and not out and len(err.splitlines()) == 1
    assert "the module 'hostile_points'" in err and "--allow-code" in err and "ORCH_ALLOW_CODE=1" in err
    assert "hostile_points" not in sys.modules


SWEEPS = {
    "settings": "settings: {a: {data.name: 'NAME'}, b: {seed: 2}}",
    "a whole section": "settings: {a: {data: {name: 'NAME'}}}",
    "a grid": "space: {data.name: [digits, 'NAME']}",
    "draws": "space: {data.name: {choice: [digits, 'NAME']}}\nsearch: random\nsamples: 2",
    "a search": (
        "space: {data.name: {choice: [digits, 'NAME']}, recipe.epochs: {randint: [1, 3]}}\n"
        "search: optuna\nmetric: lira.auc\nsamples: 20"
    ),
    "components in a list": "settings: {a: {audit.attacks: ['NAME']}}",
    "a model": "space: {model.name: [mlp, 'NAME']}",
}


@family(
    "command, form",
    product((["validate"], ["sweep"], ["tune", "mia"], ["cost", "--sweep"]), SWEEPS),
    default={*range(len(SWEEPS)), *(number * len(SWEEPS) + 2 for number in (1, 2, 3))},
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_code_in_a_sweep_file_is_refused_like_that_of_a_plan(
    command: list[str], form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if form == "a search" and command[0] == "tune":
        pytest.skip("orch tune takes no such search")
    Path("theirs.yaml").write_text(f"base: mia-smoke\n{SWEEPS[form].replace('NAME', NAME)}\n")
    more = ["--metric", "lira.auc"] if command[0] == "tune" else []
    assert main([*command, "theirs.yaml", *more]) == 2
    err = capsys.readouterr().err
    assert not ran() and "hostile_points" not in sys.modules
    assert "the module 'hostile_points'" in err and "--allow-code" in err


@family("form", SWEEPS, default=(0, 2))
def test_a_job_gets_no_permission_for_code_in_a_sweep_file_by_that_for_other_code(form: str) -> None:
    Path("mine.py").write_text("def points():\n    pass\n")
    Path("theirs.yaml").write_text(f"base: mia-smoke\n{SWEEPS[form].replace('NAME', NAME)}\n")
    session = Session()
    words = ["sweep", "theirs.yaml", "--set", "data.name=python:mine:points", "--store", "/srv/store"]
    with (
        asking(session.permission.may_run),
        pytest.raises(BadInput, match=r"python:hostile_points:points.*--allow-code"),
    ):
        read_command(session, words)
    with asking((allowed := Session()).permission.may_run):
        assert "--allow-code" in read_command(allowed, [*words, "--allow-code"]).words
    with asking((named := Session()).permission.may_run):
        named.permission.said([NAME])
        assert "--allow-code" in read_command(named, [words[0], words[1], *words[4:]]).words, "nobody is asked there"


def test_a_worker_runs_no_code_and_reaches_no_place_that_its_driver_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"audit": {"kind": "mia"}, "data": {"name": NAME}}
    served = {"gives": "logits", "template": {"x": "{inputs}"}, "answers": "$.y", "token_env": "THEIR_TOKEN"}
    asks = {"weights": "https://models.example/x", "served": served, "members": "0:60", "non_members": "60:120"}
    plans = {"code": raw, "address": {"audit": {"kind": "mia"}, "target": asks}}

    def handed_over(permission: Permission) -> TrustedContexts:
        with asking(permission.may_run), reach.asking(permission.refused):
            contexts = pickle.dumps(TrustedContexts(kind_named("mia"), plans, "store", "cpu", "0"))
        return cast(TrustedContexts, pickle.loads(contexts))

    closed = handed_over(Permission())
    with pytest.raises(BadInput, match="--allow-code"):
        closed.open("code")
    assert not ran()
    with pytest.raises(BadInput, match=r"THEIR_TOKEN.*--allow-addresses"):
        closed.open("address")
    named = Permission(own={NAME}, places={("THEIR_TOKEN", "models.example")})
    for word in ("code", "address"):
        with pytest.raises(BadInput, match="differs between machines"):  # after permission
            handed_over(named).open(word)
    assert ran()
    monkeypatch.setenv("ORCH_ALLOW_CODE", "1")
    monkeypatch.setenv("ORCH_ALLOW_ADDRESSES", "models.example")
    said = handed_over(Permission())
    monkeypatch.delenv("ORCH_ALLOW_CODE")
    monkeypatch.delenv("ORCH_ALLOW_ADDRESSES")
    assert said.may_run is not None and said.may_run([(NAME, None)])
    with pytest.raises(BadInput, match="THEIR_TOKEN"):  # the place is allowed, the credential is not
        said.open("address")


def test_a_worker_knows_the_credentials_of_masked_addresses_before_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = mask({"audit": {"kind": "mia"}, "compute": {"store": "s3://me:secret@bucket/x?region=eu-west-1"}})
    handed_over = pickle.dumps(TrustedContexts(kind_named("mia"), {"plan": plan}, "store", "cpu", "0"))
    monkeypatch.setattr(credentials, "_real", {})
    with pytest.raises(BadInput, match="differs between machines"):  # after all that is asked about
        pickle.loads(handed_over).open("plan")


def test_a_finished_run_of_somebody_else_is_judged_without_its_code() -> None:
    write_run(Path("theirs"))
    document = json.loads(Path("theirs/result.json").read_text())
    document["plan"]["model"] = {"name": "python:hostile_points:Net", "settings": {}}
    Path("theirs/result.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match="ORCH_ALLOW_CODE=1"):
        Report(Path("theirs")).failures({"auc": 0.6})
    assert not ran()


def test_permission_for_a_plan_is_none_for_that_of_the_folder_where_its_results_go() -> None:
    out = Path("theirs")
    out.mkdir()
    (out / "result.json").write_text("{}")
    (out / "plan.yaml").write_text(shipped_text("mia-smoke").replace("mlp", "python:hostile_points:Net"))
    assert "hostile_points" in (out / "plan.yaml").read_text()
    with asking(lambda _: True), pytest.raises(BadInput, match=r"another plan .*python:hostile_points:Net"):
        refuse_other_plan(out, load_plan("mia-smoke"))
    assert not ran()


def test_code_behind_conditions_of_a_large_space_is_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    Path("theirs.yaml").write_text(
        f"""base: mia-smoke
space:
  audit.level: [0.9, 0.95, 0.96, 0.97]
  audit.bootstrap: {{choice: [40, 41, 42, 43], when: {{audit.level: [0.95, 0.96, 0.97]}}}}
  data.name: {{choice: [digits, '{NAME}'], when: {{audit.bootstrap: [41, 42, 43]}}}}
  audit.fdr: [0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
search: random
samples: 8
scheduler: asha
metric: rmia.auc
"""
    )
    assert main(["sweep", "theirs.yaml", "--out", "out"]) == 2 and not ran()
    assert "the module 'hostile_points'" in capsys.readouterr().err


def test_code_runs_when_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["validate", "plan.yaml", "--allow-code"]) == 0
    assert ran()
    Path("ran").unlink()
    assert main(["validate", "plan.yaml"]) == 2, "one command's permission is not the next one's"
    monkeypatch.delitem(sys.modules, "hostile_points")
    monkeypatch.setenv("ORCH_ALLOW_CODE", "1")
    assert main(["validate", "plan.yaml"]) == 0
    assert ran()


def test_what_stands_on_the_command_line_is_the_users_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "shard", NAME, "shards"]) == 0 and ran()
    Path("ran").unlink()
    sys.modules.pop("hostile_points")
    plan(tmp_path, root=str(tmp_path))
    assert main(["validate", "plan.yaml", "--set", f"data.name={NAME}"]) == 2 and not ran(), "the folder is the plan's"
    (tmp_path / "mlp").symlink_to(tmp_path)
    plan(tmp_path, root="mlp")  # a word about something else is none about a folder
    assert main(["validate", "plan.yaml", "--set", f"data.name={NAME}", "--set", "model.name=mlp"]) == 2
    assert main(["validate", "plan.yaml", "--set", f"data={{name: '{NAME}', root: {tmp_path}}}"]) == 0 and ran()


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_is_asked(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda text, **_: asked.append(text) or answer)
    assert main(["validate", "plan.yaml"]) == (0 if answer else 2)
    assert ran() is answer
    assert NAME in asked[0]


def test_a_report_has_no_pictures_that_code_would_give(capsys: pytest.CaptureFixture[str]) -> None:
    page: Any = SimpleNamespace(images=lambda document, data: data().inputs)
    document = {"plan": {"data": {"name": NAME}}}
    with asking(Permission().may_run):
        assert thumbnails(page, document) == {}
    assert "without thumbnails: python:hostile_points" in capsys.readouterr().err and not ran()
    assert len(thumbnails(page, document)) == 3000, "a library asks nobody"


def test_a_finished_run_is_told_without_the_code_of_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_only(monkeypatch)
    document = write_run(tmp_path / "run", targets=2, points=100)
    plan = {**document["plan"], "model": {"name": "python:hostile_points:Net"}}
    Path("run/result.json").write_text(json.dumps({**document, "plan": plan}))
    assert main(["report", "run", "--junit", "orch.xml", "--summary", "summary.md"]) == 0 and not ran()
    assert "retrain" in Path("orch.xml").read_text() and "worst" in Path("summary.md").read_text()


def test_a_hostile_plan_is_refused_before_anything_slow_is_imported() -> None:
    code = (
        "import sys; from orchestrator.cli.main import main; code = main(['validate', 'plan.yaml']); "
        "print(code, sorted({'torch', 'ray', 'mlflow', 'hostile_points'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}"},
        check=True,
    )
    assert done.stdout == "2 []\n" and not ran()
