"""The folder of a sweep or a choice: what goes on there, and what is refused without a change to it."""

from __future__ import annotations

import hashlib
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from audits.errors import BadInput
from orchestrator.cli import audit as audit_command
from orchestrator.cli import sweep as sweep_command
from orchestrator.cli import tune as tune_command
from orchestrator.cli.main import main
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.run.holding import held
from orchestrator.engine.run.search_checks import head_of
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal
from tests.cases.families import family

METRIC = "gradient_ascent.apollo.auc"
FILE = {
    "base": "apollo-smoke",
    "space": {"audit.search.epsilon": {"loguniform": [0.02, 1.0]}},
    "samples": 3,
    "search": "optuna",
    "metric": METRIC,
}
OUT = ("--out", "runs/x")
TUNE = ("tune", "apollo", "o.yaml", "--search", "random")


class Runs:
    """Stands for the runs of ``orch``: notes their names, begins the journal of a search, and finishes unless told."""

    def __init__(self) -> None:
        self.finish = True
        self.refuse = False
        self.names: list[str] = []

    def sweep(self, kind: Any, sweep: Any, plan: Any, out: Path, *rest: Any, force: bool, **how: Any) -> Any:
        self.names.append(sweep.name)
        if self.refuse:
            raise BadInput("trial 0 was another one")
        how["claim"]()
        if sweep.search is not None and sweep.search.adaptive:
            Journal(out / JOURNAL_FILE, head_of(sweep.search, with_digests(plan))).begin(anew=force)
        settings = [{"setting": name} for name in sweep.settings(plan.resolved())]
        return self.ended(out, {"name": sweep.name, "settings": settings})

    def audit(self, kind: Any, plan: Any, out: Path, *rest: Any, **how: Any) -> Any:
        self.names.append(f"{plan.kind}-audit")
        how["claim"]()
        return self.ended(out, {"name": f"{plan.kind}-audit"})

    def choose(self, kind: Any, choice: Any, plan: Any, out: Path, *rest: Any, **how: Any) -> Any:
        self.names.append(choice.sweep)
        how["claim"]()
        settings = [{"setting": name} for name in choice.settings]
        (out / "tuned.yaml").write_text(f"{choice.metric}, {choice.mode}")
        name = f"tune-{choice.sweep}"
        return self.ended(
            out, {"name": name, "selection": {"metric": choice.metric, "mode": choice.mode, "settings": settings}}
        )

    def ended(self, out: Path, document: dict[str, Any]) -> Any:
        if not self.finish:
            raise KeyboardInterrupt
        (out / "result.json").write_text(json.dumps(document))
        return self

    def to_json(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    found = Runs()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCH_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(sweep_command, "run_sweep", found.sweep)
    monkeypatch.setattr(tune_command, "run_selection", found.choose)
    monkeypatch.setattr(audit_command, "run_audit", found.audit)
    for command in (sweep_command, tune_command, audit_command):
        monkeypatch.setattr(command, "show_result", lambda *shown: None)
    for command in ("write_for_ci", "close_gate"):
        monkeypatch.setattr(audit_command, command, lambda *shown: None)
    written()
    return found


def written(name: str = "o.yaml", **fields: object) -> str:
    Path(name).write_text(yaml.safe_dump({**FILE, **fields}, sort_keys=False))
    return name


def digests() -> dict[str, str]:
    files = [each for each in Path("runs").rglob("*") if each.is_file()]
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


@family(
    "words, changed, why",
    [
        (("--set", "split.shadows=16"), {}, "of another plan (split.shadows: 8 there, 16 here)"),
        (("--mode", "min"), {}, "of another search (mode[0]: max there, min here)"),
        (("--scheduler", "asha"), {}, "of another search (scheduler: none there, asha here)"),
        ((), {"search_seed": 7}, "of another search (seed: 0 there, 7 here)"),
    ],
    default=(0, 3),
)
def test_a_refused_command_leaves_an_interrupted_search_as_it_was(
    words: tuple[str, ...], changed: dict[str, object], why: str, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.finish = False
    assert main(["sweep", "o.yaml", *OUT]) == 130
    before = digests()
    assert {Path(each).name for each in before} >= {"plan.yaml", "sweep.yaml", JOURNAL_FILE}
    capsys.readouterr()
    assert main(["sweep", written(**changed), *words, *OUT]) == 2
    assert why in (said := capsys.readouterr().err) and said.count("\n") == 1
    assert digests() == before
    runs.finish = True
    assert main(["sweep", "--resume", *OUT]) == 0


@pytest.mark.parametrize("finish", [False, True], ids=["interrupted", "finished"])
def test_a_search_that_refuses_its_journal_leaves_the_folder_as_it_was(finish: bool, runs: Runs) -> None:
    """``--samples`` and ``--workers`` would be written down: sweep.yaml and plan.yaml say other things with them."""
    runs.finish = finish
    assert main(["sweep", "o.yaml", *OUT]) == (0 if finish else 130)
    before = digests()
    runs.refuse = True
    assert main(["sweep", "o.yaml", "--samples", "9", "--workers", "0", *OUT]) == 2
    assert digests() == before


@family(
    "finish, words, more",
    product(
        (False, True), (("o.yaml",), ("--resume",), ("o.yaml", "--resume")), (("--samples", "11"), ("--seconds", "60"))
    ),
    default=(0, 3, 10),
    ids=lambda value: ("interrupted", "finished")[value] if isinstance(value, bool) else " ".join(value),
)
def test_more_samples_or_seconds_extend_a_search(
    finish: bool, words: tuple[str, ...], more: tuple[str, ...], runs: Runs
) -> None:
    written(seconds=30)
    runs.finish = finish
    assert main(["sweep", "o.yaml", *OUT]) == (0 if finish else 130)
    assert main(["sweep", *words, *more, *OUT]) == (0 if finish else 130)
    kept = yaml.safe_load(Path("runs/x/sweep.yaml").read_text())
    assert str(kept[more[0].strip("-")]) == more[1]


def test_more_random_settings_extend_a_sweep_but_other_ones_do_not(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("o.yaml").write_text(yaml.safe_dump({**FILE, "search": "random"}))
    assert main(["sweep", "o.yaml", *OUT]) == 0
    assert main(["sweep", "o.yaml", "--samples", "5", *OUT]) == 0
    before = digests()
    assert main(["sweep", "o.yaml", "--samples", "5", "--search-seed", "1", *OUT]) == 2
    assert "holds the run of another sweep" in capsys.readouterr().err
    assert main(["sweep", "--vary", "audit.search.epsilon=0.1,0.2", "apollo-smoke", *OUT]) == 2
    assert digests() == before


@family("words", [("sweep", "o.yaml"), ("sweep", "--resume"), TUNE], default=(1, 2), ids=" ".join)
def test_fewer_random_settings_than_a_result_has_are_refused(
    words: tuple[str, ...], runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    written(search="random")
    first = ("sweep", "o.yaml") if words[0] == "sweep" else TUNE
    assert main([*first, "--samples", "5", *OUT]) == 0
    before = digests()
    assert main([*words, "--samples", "3", *OUT]) == 2
    said = capsys.readouterr().err
    assert "holds a result of 5 settings, of which samples: 3 would leave out 2; give as many samples" in said
    assert "choose another --out, or add --force" in said and said.count("\n") == 1
    assert digests() == before
    assert main([*words, "--samples", "3", *OUT, "--force"]) == 0
    assert main([*words, "--samples", "3", *OUT]) == 0


@pytest.mark.parametrize("finish", [False, True], ids=["interrupted", "finished"])
def test_fewer_samples_than_a_search_has_trials_are_refused(
    finish: bool, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.finish = finish
    assert main(["sweep", "o.yaml", *OUT]) == (0 if finish else 130)
    journal = Path("runs/x", JOURNAL_FILE)
    for number in range(2):
        trial = {"trial": number, "changes": {}, "params": {}, "jobs": ""}
        journal.write_bytes(journal.read_bytes() + json.dumps(trial).encode() + b"\n")
    before = digests()
    capsys.readouterr()
    assert main(["sweep", "o.yaml", "--samples", "1", *OUT]) == 2
    said = capsys.readouterr().err
    assert f"{JOURNAL_FILE} has 2 trials, and samples: 1 would leave some out; give 2 or more, choose another" in said
    assert said.count("\n") == 1 and digests() == before
    assert main(["sweep", "o.yaml", "--samples", "2", *OUT]) == (0 if finish else 130)


@family("words", [("o.yaml",), ("--resume",)], default=(0,), ids=" ".join)
def test_a_search_that_goes_on_keeps_its_name(words: tuple[str, ...], runs: Runs) -> None:
    runs.finish = False
    assert main(["sweep", "o.yaml", *OUT]) == 130
    runs.finish = True
    assert main(["sweep", *words, *OUT]) == 0
    assert main(["sweep", "--resume", *OUT]) == 0
    assert runs.names == ["o", "o", "o"]


def test_a_run_of_an_earlier_version_has_the_name_of_its_folder(runs: Runs) -> None:
    assert main(["sweep", "o.yaml", *OUT]) == 0
    Path("runs/x/run.json").unlink()
    assert main(["sweep", "--resume", *OUT]) == 0
    assert runs.names == ["o", "x"]


VARY = ("sweep", "--vary", "audit.search.epsilon=0.1,0.2", "apollo-smoke")
AUDIT = ("audit", "apollo", "apollo-smoke")
SHIPPED = ("sweep", "apollo-demo", "apollo-smoke")


@family(
    "first, second, former, name",
    [
        (VARY, AUDIT, "vary-epsilon", "apollo-audit"),
        (AUDIT, VARY, "apollo-audit", "vary-epsilon"),
        (("sweep", "o.yaml"), AUDIT, "o", "apollo-audit"),
        (SHIPPED, VARY, "apollo-demo", "vary-epsilon"),
    ],
    default=(0, 1),
)
def test_the_result_of_one_command_is_not_written_over_by_another(
    first: tuple[str, ...], second: tuple[str, ...], former: str, name: str, runs: Runs,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert main([*first, *OUT]) == 0
    before = digests()
    capsys.readouterr()
    assert main([*second, *OUT]) == 2
    said = capsys.readouterr().err
    assert f"holds the result of {former}, and this run is {name}; choose another --out, or add --force" in said
    assert said.count("\n") == 1 and digests() == before
    assert main([*first, *OUT]) == 0
    assert main([*second, *OUT, "--force"]) == 0
    assert Path("runs/x/sweep.yaml").exists() == (second is VARY) and not Path("runs/x", JOURNAL_FILE).exists()
    assert main([*second, *OUT]) == 0


@family("words", [AUDIT, VARY, SHIPPED], default=(0, 1), ids=" ".join)
def test_a_search_that_has_not_ended_is_not_written_over(
    words: tuple[str, ...], runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.finish = False
    assert main(["sweep", "o.yaml", *OUT]) == 130
    before = digests()
    capsys.readouterr()
    assert main([*words, *OUT]) == 2
    assert "holds a search that has not ended (search.jsonl); choose another --out" in capsys.readouterr().err
    assert digests() == before


@family("words", [("sweep", "o.yaml"), ("sweep", "--resume"), AUDIT, VARY, TUNE], default=(0, 2, 4), ids=" ".join)
def test_one_command_at_a_time_writes_into_a_folder(
    words: tuple[str, ...], runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.finish = words[-1] != "--resume"
    folder = Path("runs/x")
    if words[-1] == "--resume":
        assert main(["sweep", "o.yaml", *OUT]) == 130
    folder.mkdir(parents=True, exist_ok=True)
    before = digests()
    capsys.readouterr()
    with held(folder):
        assert main([*words, *OUT]) == 2
        said = capsys.readouterr().err
        assert "--out runs/x is in use by another command of orch; wait until that ends" in said
        assert said.count("\n") == 1 and digests() == before
    assert main([*words, *OUT]) == (0 if runs.finish else 130)


@pytest.mark.parametrize("words", [AUDIT, SHIPPED], ids=" ".join)
def test_files_of_the_user_in_a_folder_of_results_stay(
    words: tuple[str, ...], runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("runs/x")
    folder.mkdir(parents=True)
    (folder / "sweep.yaml").write_text("mine")
    assert main([*words, *OUT]) == 0
    assert (folder / "sweep.yaml").read_text() == "mine"
    other = Path("runs/y")
    other.mkdir()
    (other / "plan.yaml").write_text("mine")
    capsys.readouterr()
    assert main([*words, "--out", str(other)]) == 2
    said = capsys.readouterr().err
    assert "--out runs/y holds a plan.yaml that no run has left there; choose another --out" in said
    assert [*other.iterdir()] == [other / "plan.yaml"] and (other / "plan.yaml").read_text() == "mine"


def test_a_folder_that_was_given_no_name_is_refused(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*VARY, "--out", ""]) == 2
    assert "--out is empty; give a folder, or leave it out" in capsys.readouterr().err


OTHERS = [
    (*TUNE, "--metric", "retrain.apollo.auc"),
    ("sweep", "o.yaml", "--search", "random"),
    ("audit", "apollo", "apollo-smoke"),
]


@family(
    "left, words",
    product(("interrupted", "finished", "of an earlier version"), OTHERS),
    default=(0, 4, 8),
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_choice_is_not_mixed_with_another_run(
    left: str, words: tuple[str, ...], runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.finish = left != "interrupted"
    assert main([*TUNE, *OUT]) == (0 if runs.finish else 130)
    if left == "of an earlier version":
        Path("runs/x/run.json").unlink()
    before = digests()
    capsys.readouterr()
    assert main([*words, *OUT]) == 2
    said = capsys.readouterr().err
    assert f"holds a choice of orch tune by {METRIC}, max" in said and "--force" in said and said.count("\n") == 1
    assert digests() == before
    assert main([*TUNE, *OUT]) == (0 if runs.finish else 130)


def test_a_choice_is_written_over_by_force_alone_and_leaves_no_tuned_plan(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = ("sweep", "o.yaml", "--search", "random", *OUT)
    assert main([*TUNE, *OUT]) == 0
    assert main([*sweep, "--force"]) == 0
    assert not Path("runs/x/tuned.yaml").exists()
    assert main([*sweep]) == 0
    assert main([*TUNE, *OUT]) == 2
    assert "holds the run of another command than orch tune" in capsys.readouterr().err
    assert main([*TUNE, *OUT, "--force"]) == 0
    assert Path("runs/x/tuned.yaml").read_text() == f"{METRIC}, max"
