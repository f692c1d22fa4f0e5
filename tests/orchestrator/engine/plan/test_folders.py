"""A folder is neither a plan nor a sweep: it hides no shipped one, and is refused in one line where there is none."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from audits.errors import BadInput
from orchestrator.cli.main import main
from orchestrator.cli.session import Session
from orchestrator.cli.submitted_work import read_command
from orchestrator.engine.plan.files import read_plan, shipped_plan, shipped_plans
from orchestrator.engine.plan.sweep_files import sweep_named
from tune_spaces import SWEEPS

FOLDER = "is a folder, not a"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder that holds a folder for every shipped plan and sweep, and some others."""
    monkeypatch.chdir(tmp_path)
    for name in (*shipped_plans(), *SWEEPS, "results", "mine.yaml", "runs"):
        Path(name).mkdir(exist_ok=True)
    for name in ("plan", "sweep"):
        Path("runs", f"{name}.yaml").touch()


def test_shipped_plans_and_sweeps_are_found_beside_folders_of_their_names() -> None:
    assert all(read_plan(name) == shipped_plan(name) for name in shipped_plans())
    assert all(sweep_named(name) is SWEEPS[name] for name in SWEEPS)
    with pytest.raises(BadInput, match="is a sweep, not a plan"):
        read_plan("apollo-demo")
    with pytest.raises(BadInput, match="is a plan, not a sweep"):
        sweep_named("mia-smoke")


def test_a_file_takes_the_place_of_no_shipped_plan_or_sweep() -> None:
    for name in ("mia-smoke", "apollo-demo"):
        Path(name).rmdir()
        Path(name).write_text("seed: 77\n")
    assert read_plan("mia-smoke") == shipped_plan("mia-smoke") and sweep_named("apollo-demo") is SWEEPS["apollo-demo"]
    assert read_plan("./mia-smoke") == {"seed": 77}
    with pytest.raises(BadInput, match="seed"):
        sweep_named("./apollo-demo")


@pytest.mark.parametrize("name", ["results", "results/", "mine.yaml", "./mia-smoke", "."])
def test_other_folders_are_refused(name: str) -> None:
    for read in (read_plan, sweep_named):
        with pytest.raises(BadInput, match=FOLDER) as caught:
            read(name)
        assert "\n" not in str(caught.value)


def test_the_plan_and_the_sweep_of_a_run_are_named() -> None:
    for read, file in ((read_plan, "runs/plan.yaml"), (sweep_named, "runs/sweep.yaml")):
        with pytest.raises(BadInput, match=f"{FOLDER}.*{file}"):
            read("runs")


@pytest.mark.parametrize(
    "words",
    [
        "audit mia results", "cost results", "validate results", "sweep results", "sweep apollo-demo results",
        "sweep --vary seed=1,2 results", "cost --sweep results", "tune mia results", "doctor --cluster results",
        "audit mia mine.yaml", "sweep mine.yaml", "cp results copy.yaml",
    ],
)  # fmt: skip
def test_commands_refuse_folders_in_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and ("results" in said or "mine.yaml" in said)


@pytest.mark.parametrize("words", ["validate mia-smoke", "cp mia-smoke copy.yaml", "cp mia-epochs copy.yaml"])
def test_commands_find_shipped_ones(words: str) -> None:
    assert main(words.split()) == 0


def test_a_folder_is_not_sent_to_a_cluster() -> None:
    store = ("--store", "/srv/store")
    for words in (("audit", "mia", "mia-smoke"), ("sweep", "mia-epochs", "mia-smoke")):
        work = read_command(Session(), [*words, *store])
        assert (work.source, work.sweep) == (None, None) and set(words) <= set(work.words)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    for read in (read_plan, sweep_named):
        with pytest.raises(BadInput, match="cannot be read: File name too long"):
            read("x" * 5000)


def test_a_plan_and_a_sweep_come_through_a_pipe() -> None:
    os.mkfifo("pipe")
    for read, text in ((read_plan, "seed: 5\n"), (sweep_named, "base: mia-smoke\nspace: {seed: [1, 2]}\n")):
        writer = Thread(target=Path("pipe").write_text, args=(text,))
        writer.start()
        assert read("pipe")
        writer.join()
