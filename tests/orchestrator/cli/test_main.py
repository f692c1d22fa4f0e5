"""The command line: lazy imports, exit codes, options, and what each command hands to the pipeline."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors import ray_watch
from audits.data.catalogue import describe, load
from audits.errors import BadInput, ServerSilent
from orchestrator.apollo.page import page as render
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.cli import audit as audit_command
from orchestrator.cli import sweep as sweep_command
from orchestrator.cli.listing import opening, plain
from orchestrator.cli.main import COMMANDS, group, main
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.judgement.gate import Gate, judge_gates
from orchestrator.kinds import load_plan
from tests.cases.apollo_result import write_run, write_whole_run

HEAVY = ("torch", "ray", "mlflow", "scipy", "pandas", "matplotlib", "pyarrow", "sklearn", "jinja2", "transformers")
HELP = [[], *([name] for name in COMMANDS), ["data", "ls"], ["data", "shard"], ["data", "verify"]]


@dataclass(frozen=True)
class Done:
    """What the pipeline returns, as far as the command line reads it."""

    document: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the content of result.json."""
        return self.document


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder with no store named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)
    monkeypatch.delenv("ORCH_DEBUG", raising=False)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the content of a drawn result.json."""
    return ApolloRun.of(write_run(tmp_path_factory.mktemp("run"))).result.document()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Replace the pipeline by one that writes down its arguments and returns a drawn result."""
    seen: list[tuple[Any, ...]] = []

    def run_audit(
        kind: Any, plan: Any, out: Path, terminal: Any, *, rebuild: bool, gates: Sequence[Gate] = (), **how: Any
    ) -> Done:
        how["claim"]()
        seen.append((plan, out, rebuild))
        terminal.line("at work")
        (out / "result.json").touch()
        return Done({**drawn, "gate": judge_gates(gates, kind.headline, plan, drawn).to_json()})

    def run_sweep(kind: Any, sweep: Any, plan: Any, out: Path, terminal: Any, *, rebuild: bool, **how: Any) -> Done:
        how["claim"]()
        seen.append((sweep.name, plan, out, rebuild))
        return Done(drawn)

    monkeypatch.setattr(audit_command, "run_audit", run_audit)
    monkeypatch.setattr(sweep_command, "run_sweep", run_sweep)
    return seen


def test_no_help_imports_anything_heavy() -> None:
    script = "\n".join(
        [
            "import contextlib, io, sys",
            "from orchestrator.cli.main import main",
            f"for arguments in {HELP!r}:",
            "    with contextlib.redirect_stdout(io.StringIO()) as text:",
            "        code = main([*arguments, '--help'])",
            "    assert code == 0 and 'Usage: orch' in text.getvalue(), arguments",
            f"    heavy = [name for name in {HEAVY!r} if name in sys.modules]",
            "    assert not heavy, (arguments, heavy)",
        ]
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_top_level_help_imports_no_subcommand() -> None:
    script = "\n".join(
        [
            "import sys",
            "from orchestrator.cli.main import main",
            "assert main(['--help']) == 0",
            "print([name for name in sys.modules if name.startswith('orchestrator.cli.')])",
        ]
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    own = [f"orchestrator.cli.{name}" for name in ("own_packages", "lines", "permission", "session", "main")]
    assert done.stdout.splitlines()[-1] == str(own)


def test_every_command_of_the_table_exists_and_says_what_the_table_says() -> None:
    context = group.make_context("orch", ["ls", "plans"])
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_audit_runs_the_plan_and_ends_with_the_table_the_report_and_last_the_verdict(
    calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["audit", "apollo", "--set", "seed=3", "--workers", "1", "--store", "s"]) == 0
    ((plan, out, rebuild),) = calls
    assert (plan.seed, plan.compute.workers, plan.compute.store, rebuild) == (3, 1, "s", False)
    assert out == Path("runs/apollo")
    assert load_plan(str(tmp_path / "runs/apollo/plan.yaml")).resolved() == plan.resolved()
    printed = capsys.readouterr().out
    assert "LiRA" in printed
    *_, report, verdict, advice = printed.splitlines()
    assert report == "report: runs/apollo/report.html"
    assert verdict.startswith(
        "Verdict: Deleted images can still be recognised: Gradient ascent (AUC "
    ) and advice.startswith("What to do: ")


def test_json_alone_goes_to_standard_output(calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "apollo", "--json", "--out", "here", "--rebuild"]) == 0
    seen = capsys.readouterr()
    assert json.loads(seen.out)["schema"] == "orch.result/2"
    assert "at work" in seen.err
    assert calls[0][1:] == (Path("here"), True)


def test_a_failed_gate_exits_with_1_after_the_result(
    calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    attacks = "apollo, apollo_offline, random_directions, single_query, label_gap, lira, loss_threshold"
    command = ["audit", "apollo", "--set", f"audit.attacks=[{attacks}]", "--fail-above"]
    assert main([*command, "auc=0.99"]) == 0
    assert main([*command, "auc=0.51", "--fail-above", "identity.apollo.auc=0.99"]) == 1
    assert "gate auc=0.51: failed: auc is" in capsys.readouterr().out.splitlines()[-1]
    assert main(["audit", "apollo", "--force", "--fail-above", "auc=0.99"]) == 1  # the plan has an attack more
    assert "gate auc=0.99: inconclusive: no result of " in capsys.readouterr().out.splitlines()[-1]


def test_sweep_starts_from_its_base_plan_and_resumes_by_the_plan_of_the_run(calls: list[tuple[Any, ...]]) -> None:
    assert main(["sweep", "apollo-ablation", "--set", "seed=5"]) == 0
    assert main(["sweep", "apollo-ablation", "--resume"]) == 0
    first, second = calls
    assert first[0] == "apollo-ablation"
    assert second[1].plan_hash == first[1].plan_hash
    assert second[1].seed == 5
    assert first[2] == Path("runs/apollo-ablation")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BadInput("no such thing"), 2, "orch: no such thing"),
        (
            CorruptArtefact("artefact train/1 is damaged"),
            3,
            "orch: artefact train/1 is damaged (log: runs/apollo/orch.log)",
        ),
        (ServerSilent("no answer for 60 s"), 3, "orch: no answer for 60 s (log: runs/apollo/orch.log)"),
        (RuntimeError("it\nbroke"), 3, "orch: RuntimeError: it (log: runs/apollo/orch.log)"),
        (KeyboardInterrupt(), 130, "orch: stopped; finished models are kept; run the same command again to go on"),
    ],
)
def test_whatever_happens_is_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(audit_command, "run_audit", fail)
    assert main(["audit", "apollo"]) == code
    assert capsys.readouterr().err.splitlines() == [said]
    if code == 3:
        assert "Traceback" in Path("runs/apollo/orch.log").read_text()
        monkeypatch.setenv("ORCH_DEBUG", "1")
        with pytest.raises(type(error)):
            main(["audit", "apollo"])


def test_lost_workers_are_one_line_that_names_the_log_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        with ray_watch.watched():
            time.sleep(60)

    monkeypatch.setattr(ray_watch, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(ray_watch, "_dead", lambda: "raylet")
    monkeypatch.setattr(audit_command, "run_audit", fail)
    assert main(["audit", "apollo"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "orch: WorkersLost: Ray's raylet ended unexpectedly; finished models are kept; run the same command again to "
        "go on (log: runs/apollo/orch.log)"
    ]


def test_a_break_before_the_run_has_a_log_is_written_to_a_file_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RuntimeError("x")

    monkeypatch.setattr("orchestrator.cli.listing.shipped_plans", fail)
    assert main(["ls", "plans"]) == 3
    log = Path(capsys.readouterr().err.strip().partition("(log: ")[2].rstrip(")"))
    assert "RuntimeError: x" in log.read_text()
    log.unlink()


def test_a_folder_with_the_run_of_another_plan_is_left_alone_without_force(
    calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "apollo", "--out", "o"]) == 0
    assert main(["audit", "apollo", "--out", "o", "--workers", "0"]) == 0
    assert main(["audit", "apollo", "--out", "o", "--set", "seed=1"]) == 2
    assert "(seed: 0 there, 1 here)" in capsys.readouterr().err
    assert main(["audit", "apollo", "--out", "o", "--set", "seed=1", "--force"]) == 0
    assert len(calls) == 3


def test_cp_copies_a_shipped_plan_and_overwrites_only_with_force(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cp", "apollo-smoke", "mine.yaml"]) == 0
    assert Path("mine.yaml").read_text() == shipped_plans()["apollo-smoke"]
    assert main(["cp", "apollo-fashion14", "mine.yaml"]) == 2
    assert main(["cp", "apollo-fashion14", "mine.yaml", "--force"]) == 0
    assert main(["cp", "apollo-smoke", "."]) == 0
    assert Path("apollo-smoke.yaml").exists()


def test_validate_shows_the_notes_of_the_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "digits: 3 columns are left out"
    noted = dataclasses.replace(describe("digits"), notes=(line,))
    monkeypatch.setattr("orchestrator.cli.validate.describe", lambda *_: noted)
    assert main(["validate", "apollo-smoke"]) == 0
    assert capsys.readouterr().out.splitlines().count(line) == 1


def test_validate_warns_of_a_gpu_that_is_not_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for workers in "01":
        words = ["validate", "apollo-smoke", "--set", "compute.device=cuda", "--set", f"compute.workers={workers}"]
        assert main(words) == 0
        assert "warning: compute.device is cuda, but torch finds no GPU" in capsys.readouterr().out
    assert main([*words, "--set", "compute.address=auto"]) == 0
    assert "no GPU" not in capsys.readouterr().out


def test_validate_lists_every_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--set", "split.shadows=15", "--set", "audit.fpr=[0.001]"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert main(["validate", "apollo-smoke"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "apollo-smoke is valid"
    larger = ["validate", "apollo-smoke", "--set", "compute.cpus_per_worker=1000"]
    assert main(larger) == 0
    assert "warning: on this machine no worker with 1000 CPUs fits" in capsys.readouterr().out
    assert main([*larger, "--set", "compute.address=auto"]) == 0
    assert "1000 CPUs" not in capsys.readouterr().out
    assert main(["validate", "apollo-smoke", "--set", "compute.workers_per_model=1000"]) == 0
    assert "worker(s) fit, but compute.workers_per_model is 1000; give a number" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["audits", "attacks", "unlearners", "models", "data", "sweeps", "plans"])
def test_ls_describes_everything_by_name_in_narrow_lines(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["ls", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows
    assert all(row["description"] and not set("\n`") & set(row["description"]) for row in rows)
    assert main(["ls", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == [row["name"] for row in rows]
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == " ".join(f"{row['name']} {row['description']}" for row in rows)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One sentence that\ngoes on. Another one.\n\nMore.", "One sentence that goes on."),
        (
            "A trick (Yeom et al. 2017; see Fig. 3. there) of theirs. Another.",
            "A trick (Yeom et al. 2017; see Fig. 3. there) of theirs.",
        ),
        (
            "As in Fig. 5 of Li et al. 2020, at 0.1 %: who is in? Nine.",
            "As in Fig. 5 of Li et al. 2020, at 0.1 %: who is in?",
        ),
        ("Without an end\n\nMore.", "Without an end"),
    ],
)
def test_the_first_sentence_is_whole(text: str, first: str) -> None:
    assert opening(text) == first


def test_marks_of_code_are_left_out() -> None:
    assert plain("``apollo``, :class:`Pmia` and `orch ls`") == "apollo, Pmia and orch ls"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ls"], "name a list, one of audits, models, data, sweeps, plans, attacks, "),
        (["schema"], "name a kind, one of apollo, tmia, gnq, mia, "),
        (
            ["cost", "apollo-demo"],
            "apollo-demo is a sweep, not a plan; run it with: orch sweep apollo-demo, price it with: "
            "orch cost --sweep apollo-demo",
        ),
        (["audit", "apollo", "apollo-demo"], "apollo-demo is a sweep, not a plan; run it with: orch sweep apollo-demo"),
        (
            ["sweep", "--fail-above", "auc=1"],
            "No such option '--fail-above'. --fail-above belongs to orch audit, orch score (see `orch sweep --help`)",
        ),
        (["audit", "mia", "--workers", "-1"], "--workers is '-1'; give a whole number, 0 for none, or auto"),
        (
            ["audit", "mia", "apollo-smoke", "--set", "split.test_pool=1"],  # too small, but of another audit first
            "audit.kind is 'apollo' in the plan, but the audit asked for is 'mia'; give it to orch audit apollo, or ",
        ),
    ],
)
def test_what_is_missing_or_mistaken_is_named(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"orch: {said}") and error.count("\n") == 1


def test_report_renders_a_finished_run_again_with_the_images_of_its_exposed_points(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[Path, dict[int, np.ndarray]]] = []
    pretended = dataclasses.replace(
        render.PAGE, read=lambda out: out, fill=lambda run, out, images: seen.append((out, images))
    )
    monkeypatch.setattr(render, "PAGE", pretended)
    Path("run").mkdir()
    assert main(["report", "run"]) == 2
    result = write_whole_run(Path("run"))
    exposed = {point["point_id"] for point in result["exposed"]["points"]}
    assert main(["report", "run"]) == 0
    ((out, images),) = seen
    assert out == Path("run") and images and set(images) <= exposed
    some = min(images)
    assert np.array_equal(images[some], load("fashion14").inputs[some])

    result["plan"]["data"] = {"name": "folder:nowhere", "root": None}
    Path("run/result.json").write_text(json.dumps(result))
    assert main(["report", "run"]) == 0
    assert seen[1] == (Path("run"), {})
    assert "without thumbnails: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "ls plans",
        pytest.param("cost mia-smoke", marks=pytest.mark.long),
        pytest.param("audit mia mia-smoke --set compute.workers=0", marks=pytest.mark.long),
    ],
)
def test_a_closed_pipe_is_no_error(words: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "orchestrator.cli.main", *words.split()]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, env=environment, cwd=tmp_path)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b""), done.stderr


SLOW_TO_END = """
import os, sys
from orchestrator.cli.listing import opening, plain
from orchestrator.cli.main import main
class Slow:
    def __del__(self, write=os.write, read=os.read):
        write(1, b"<<ending>>")
        read(0, 1)  # until nobody can write any more
slow = Slow()
sys.argv = ["orch", "ls", "plans"]
sys.exit(main())
"""


def test_an_interrupt_after_the_end_of_a_command_leaves_its_exit_code() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    script = [sys.executable, "-c", SLOW_TO_END]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as command:
        assert command.stdout is not None and command.stdin is not None
        said = b""
        while not said.endswith(b"<<ending>>"):
            said += command.stdout.read(1)
        command.send_signal(signal.SIGINT)
        command.stdin.close()
        assert command.wait(600) == 0
