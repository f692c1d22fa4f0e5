"""Broken plans and commands: one line on standard error, the right exit code, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import audit, sweep
from orchestrator.cli.main import main
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.kinds import check_against_data, load_plan
from tests.cases.families import family

# name → (text of the plan file, what the line must name)
FILES: dict[str, tuple[str, str]] = {
    "wrong type": ("split: {shadows: sixteen}", "split.shadows"),
    "number where a section belongs": ("split: 3", "split is 3"),
    "unknown section": ("splits: {shadows: 16}", "did you mean 'split'?"),
    "unknown key": ("split: {shadow: 16}", "did you mean 'shadows'?"),
    "odd m": ("split: {shadows: 15}", "multiple of 4"),
    "m not in pairs": ("split: {shadows: 6}", "multiple of 4"),
    "odd offline shadows": ("split: {offline_shadows: 5}", "even"),
    "forget nothing": ("split: {forget: 0}", "split.forget is 0"),
    "forget everything": ("split: {forget: 1}", "split.forget is 1"),
    "more candidates than forgotten": (
        "split: {candidates: {forget: 80, unseen: 20}}",
        "split.candidates.forget is 80",
    ),
    "forget an unknown class": ("split: {forget: {classes: [Sandals]}}", "did you mean 'Sandal'?"),
    "forget a class in two ways": ("split: {forget: {classes: [1], ids: [1]}}", "split.forget is"),
    "forget a point that is not there": (f"split: {{forget: {{ids: {list(range(69990, 70050))}}}}}", "70049"),
    "ids in a file that is not there": ("split: {forget: {ids_file: nowhere.txt}}", "split.forget.ids_file"),
    "retained without eight shadows": ("split: {shadows: 12, candidates: {retained: 9}}", "multiple of 8"),
    "unknown choice of points": ("split: {points: vulnerable}", "split.points"),
    "unknown shadow model": ("shadow_model: {name: resnt18}", "did you mean 'resnet18'?"),
    "bad shadow recipe": ("shadow_recipe: {optimizer: lion}", "shadow_recipe.optimizer"),
    "unknown norm": ("audit: {search: {norm: l1}}", "audit.search.norm"),
    "no candidates": ("split: {candidates: {forget: 0, unseen: 0}}", "split.candidates.forget is 0"),
    "shadow set too large": ("split: {targets_per_shadow_set: 4}", "candidates per set"),
    "more unseen than test points": ("split: {test_pool: 300}", "split.test_pool holds 300"),
    "train size above pool": ("split: {target_pool: 400}", "split.target_pool (400)"),
    "shadow half too small": ("split: {shadow_pool: 600}", "half of split.shadow_pool"),
    "pools above the data": ("split: {shadow_pool: 80000}", "70000"),
    "rate too small": ("audit: {fpr: [0.01]}", "it needs 1000"),
    "rate out of range": ("audit: {fpr: [5]}", "audit.fpr.0 is 5"),
    "unknown attack": ("audit: {attacks: [lyra]}", "did you mean 'lira'?"),
    "unknown audit": ("audit: {kind: timia}", "audit.kind"),
    "no steps": ("audit: {search: {steps: 0}}", "audit.search.steps"),
    "negative epsilon": ("audit: {search: {epsilon: -1}}", "audit.search.epsilon"),
    "unknown data set": ("data: {name: fashion41}", "fashion41"),
    "missing folder": ("data: {name: 'folder:nowhere'}", "nowhere"),
    "missing root": ("data: {name: mnist, root: nowhere}", "nowhere"),
    "code": ("data: {name: 'python:no_such_module:f'}", "no_such_module"),
    "unknown model": ("model: {name: resnt18}", "did you mean 'resnet18'?"),
    "unknown model setting": ("model: {name: cnn, settings: {width: 3}}", "model.settings.width"),
    "unknown unlearner": ("unlearning: [{method: scrap}]", "did you mean 'scrub'?"),
    "unknown unlearner setting": ("unlearning: [{method: scrub, msteps: 2}]", "unlearning.0.msteps"),
    "same unlearner twice": ("unlearning: [{method: scrub}, {method: scrub}]", "2 times"),
    "bad recipe": ("recipe: {optimizer: lion}", "recipe.optimizer"),
    "negative learning rate": ("recipe: {learning_rate: -0.1}", "recipe.learning_rate"),
    "bad workers": ("compute: {workers: lots}", "compute.workers"),
    "bad device": ("compute: {device: gpu}", "compute.device"),
    "store of no kind": ("compute: {store: 'ftp://host/folder'}", "no stores of scheme 'ftp'"),
    "store without a bucket": ("compute: {store: 's3:///folder'}", "it names no bucket"),
    "Ray's client as address": ("compute: {address: 'ray://host:10001'}", "compute.address"),
    "dashboard as address": ("compute: {address: 'http://host:8265'}", "use orch submit"),
    "address without a port": ("compute: {address: host}", "HOST:PORT"),
    "secret with a slash": (
        "data: {name: digits, root: 's3://KEY:WO/RD@bucket/x'}",
        'data.root is "s3://***@bucket/x"',
    ),
    "day that is none": ("seed: 1\ndata:\n  name: 2020-13-45\n", "line 3, column 9"),
    "tabs": ("split:\n\tshadows: 16\n", "tab"),
    "key twice": ("seed: 1\nseed: 2\n", "given twice"),
    "garbled": ("audit: {kind: apollo\n", "line"),
    "list": ("- audit\n", "mapping"),
    "empty": ("", "empty plan"),
    "not a number": ("seed: .nan", "finite"),
}


@pytest.fixture(autouse=True)
def no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder; reaching the pipeline is a failure."""

    def reached(*_: Any, **__: Any) -> None:
        pytest.fail("a broken plan reached the pipeline")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "run_audit", reached)
    monkeypatch.setattr(sweep, "run_sweep", reached)


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    seen = capsys.readouterr()
    assert seen.out == ""
    (line,) = seen.err.splitlines()
    assert line.startswith("orch: ")
    assert "Traceback" not in line
    return line


def test_an_interrupted_command_ends_before_ray_can_crash_in_the_interpreters_end() -> None:
    script = """
import atexit, os, signal, sys
import orchestrator.cli.main as cli
def interrupted(*_): raise KeyboardInterrupt
cli.invoke = interrupted
atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
sys.exit(cli.main())
"""
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "orch: stopped\n")


COMMANDS = [["validate"], ["audit", "apollo"], ["sweep", "apollo-ablation"], ["cost"]]


@family(
    "command, name",
    product(COMMANDS, FILES),
    default={*range(len(FILES)), *(number * len(FILES) + 7 * place for number in (1, 2, 3) for place in range(3))},
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_broken_plan_is_one_line_and_exit_code_2(
    command: list[str], name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, named = FILES[name]
    Path("plan.yaml").write_text(text)
    assert main([*command, "plan.yaml"]) == 2
    if command == ["validate"]:
        assert named in capsys.readouterr().err
    else:
        assert named in one_line(capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.yaml"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["audit"], "KIND"),
        (["audit", "timia"], "apollo, tmia"),
        (["audit", "gnqq"], "did you mean 'gnq'?"),
        (["audit", "apolo"], "did you mean 'apollo'?"),
        (["audit", "apollo", "nowhere.yaml"], "nowhere.yaml"),
        (["audit", "apollo", "apollo-fashion"], "did you mean 'apollo-fashion14'?"),
        (["audit", "apollo", "."], "folder"),
        (["audit", "apollo", "--set", "split.shadow=16"], "did you mean 'shadows'?"),
        (["audit", "apollo", "--set", "shadows"], "path=value"),
        (["audit", "apollo", "--workers", "many"], "or auto"),
        (["audit", "apollo", "--out", "file"], "is a file"),
        (["audit", "apollo", "--out", "s3://KEY:WORD@bucket/out"], "--out s3://… is an address"),
        (["audit", "apollo", "--out", "file/below"], "cannot be written"),
        (["audit", "apollo", "--out", "/proc/orch"], "cannot be written"),
        (["audit", "apollo", "--fail-above", "acu=0.6"], "unknown metric"),
        (["audit", "apollo", "--fail-above", "scrap.apollo.auc=0.6"], "did you mean 'scrub'?"),
        (["audit", "apollo", "--fail-above", "auc=high"], "a number"),
        (["audit", "apollo", "--colour"], "--colour"),
        (["sweep", "apollo-ablations"], "did you mean 'apollo-ablation'?"),
        (["sweep", "apollo-ablation", "--resume"], "no run to go on with"),
        (["sweep", "apollo-ablation", "apollo-smoke", "--resume"], "leave out PLAN"),
        (["report", "nowhere"], "result.json"),
        (["cp", "apollo", "x.yaml"], "apollo-fashion14"),
        (["cp", "apollo-smoke", "nowhere/x.yaml"], "cannot be written"),
        (["ls", "colours"], "plans"),
        (["data", "shard", "nothing", "x"], "nothing"),
        (["adit"], "did you mean 'audit'?"),
    ],
)
def test_a_broken_command_is_one_line_and_exit_code_2(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").touch()
    assert main(arguments) == 2
    assert named in one_line(capsys)
    assert not Path("runs").exists()


def test_a_plan_that_is_not_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("plan.yaml").write_bytes(b"\x89PNG\r\n\xff\xfe")
    assert main(["audit", "apollo", "plan.yaml"]) == 2
    assert "UTF-8" in one_line(capsys)


def test_an_unreadable_image_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        Path("images", name).mkdir(parents=True)
        Path("images", name, "1.png").write_bytes(b"no image")
    assert main(["audit", "apollo", "--set", "data.name=folder:images"]) == 2
    assert "images" in one_line(capsys)


def test_a_run_folder_with_a_garbled_plan_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("o").mkdir()
    Path("o/plan.yaml").write_text("{")
    Path("o/result.json").touch()
    assert main(["audit", "apollo", "--out", "o"]) == 2
    assert "--force" in one_line(capsys)
    assert Path("o/plan.yaml").read_text() == "{"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["validate", "plan.yaml"], marks=pytest.mark.long),
        pytest.param(["audit", "apollo", "plan.yaml"], marks=pytest.mark.long),
        ["audit", "timia"],
        pytest.param(["nonsense"], marks=pytest.mark.long),
    ],
)
def test_the_installed_command_agrees(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("split: {shadows: 15}\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("orch: ")


def test_every_broken_file_starts_from_a_plan_that_is_fine_without_the_defect() -> None:
    Path("plan.yaml").write_text(shipped_plans()["apollo-fashion14"])
    check_against_data(load_plan("plan.yaml"))
