"""``make gpu``: all that is to be measured on a GPU, and the hours of a paper-sized plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from audits.models import make_model
from audits.unlearning import make_unlearner
from benchmarks import gpu, paper_hours
from benchmarks.record import markers
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.engine.cost.estimate import stand_in
from orchestrator.kinds import kind_named, load_plan
from tests.cases.imported import imported_with

ROOT = Path(__file__).resolve().parents[2]


def plan() -> ApolloPlan:
    found = load_plan(paper_hours.PLAN)
    assert isinstance(found, ApolloPlan)
    return found


def test_the_hours_are_those_of_the_plan_s_models_and_methods() -> None:
    asked = plan()
    assert (asked.split.train_size, asked.data.name) == (paper_hours.POINTS, "cifar10")
    assert round(asked.split.train_size * asked.split.forget_share) == paper_hours.FORGET
    assert (asked.recipe, asked.compute.tf32) == (paper_hours.RECIPE, paper_hours.TF32)
    assert asked.model.architecture() == make_model("resnet18", paper_hours.MODEL)
    methods = {entry.method: entry for entry in asked.unlearning}
    assert set(methods) == {"identity", "retrain", *paper_hours.METHODS}
    for name, settings in paper_hours.METHODS.items():
        assert make_unlearner(name, dict(methods[name].settings)) == make_unlearner(name, settings)


@pytest.mark.long
def test_the_work_is_counted_as_the_plan_s_jobs_need_it() -> None:
    asked = plan()
    design = kind_named("apollo").lay_out(asked, stand_in(asked), "cpu", None)
    walked = answered = 0
    models: Counter[str] = Counter()
    for job in design.jobs():
        if job.stage in ("train", "unlearn"):
            models[job.document.get("method", "train")] += 1
        if job.stage not in ("trace", "search"):
            continue
        shadows = sum(len(group) for role in job.document["original"].values() for group in role)
        steps = asked.audit.search.steps if "search" in job.document else 1
        images = shadows * 2 * job.document["count"] * steps
        walked += images * (job.stage == "trace" or job.kind == "apollo")
        answered += images * (job.stage == "search")
    assert models == dict.fromkeys(["train", "retrain", *paper_hours.METHODS], paper_hours.NEEDED["models"])
    assert (walked, answered) == (paper_hours.NEEDED["walked"], paper_hours.NEEDED["answered"])


def test_hours_add_up() -> None:
    record = {
        "needed": {"models": 10, "walked": 7200, "answered": 3600},
        "seconds": {"train": 360.0, "finetune": 36.0},
        "walks_per_second": 1.0,
        "answers_per_second": 2.0,
    }
    assert paper_hours.hours(record) == {"train": 1.0, "finetune": 0.1, "walks": 2.0, "answers": 0.5}


def test_without_a_gpu_there_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert gpu.main([]) == 2
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1 and "--quick --pretend" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "gnu"], "'gnu': allowed are tests"),
        (["--pretend"], "give --quick"),
        (["--quick", "--docs", "x.md"], "leave out --quick"),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        gpu.main(arguments)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


def test_a_part_that_fails_or_takes_too_long_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu.Part, "command", lambda part, quick, pretend, record: [sys.executable, "-c", part.module])
    parts = [
        gpu.Part("fails", "raise SystemExit('no')", (), 30, measures=False),
        gpu.Part("hangs", "import time; time.sleep(60)", (), 1, measures=False),
        gpu.Part("lacks", "", (), 30, ("a_package_that_nobody_has",)),
        gpu.Part("ends", "print('fine')", (), 30, measures=False),
    ]
    found = list(gpu.ran(parts, quick=False, pretend=False))
    assert [part["state"] for part in found] == [gpu.FAILED, gpu.TOO_LONG, gpu.LEFT_OUT, gpu.ENDED]
    assert "no" in found[0]["said"] and "a_package_that_nobody_has" in found[2]["said"] and found[3]["said"] == "fine\n"


def test_tables_go_to_their_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "docs.md"
    file.write_text("\n".join(markers("a cuda")))
    told = "\n".join([markers("a cuda")[0], "new", markers("a cuda")[1]])
    parts = [
        {"name": "a", "record": {"section": "a cuda"}, "said": told},
        {"name": "b", "record": {"section": "b cuda"}, "said": told},
        {"name": "c", "record": None, "said": ""},
    ]
    gpu.fill(file, {"parts": parts})
    assert file.read_text() == told
    assert "b: " in capsys.readouterr().out


def test_every_part_that_measures_has_a_place_in_the_docs() -> None:
    text = (ROOT / "docs" / "results" / "benchmarks.md").read_text()
    sections = [
        "apollo_search cuda",
        "apollo_search cuda paper-size",
        "gnq gram cuda",
        "anomalies cuda",
        "recorded cuda",
        "paper_hours cuda",
    ]
    assert len(sections) == sum(part.measures for part in gpu.PARTS)
    assert [text.count(markers(section)[0]) for section in sections] == [1] * len(sections)


ALONE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("ray", "mlflow", "pydantic"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import pytest
from benchmarks.gpu import TESTS
sys.exit(pytest.main([*TESTS, "--collect-only"]))
"""


def test_files_with_tests_of_a_gpu_import_neither_ray_mlflow_nor_pydantic() -> None:
    files = [ROOT / word for word in gpu.TESTS if word.startswith("tests/")]
    assert len(files) > 3
    for file in files:
        assert not {"ray", "mlflow", "pydantic"} & imported_with(file).keys(), file
    assert imported_with(ROOT / "tests" / "conftest.py").keys() >= {"torch", "sqlalchemy", "pydantic"}


@pytest.mark.long
def test_tests_of_a_gpu_are_found_with_torch_alone() -> None:
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(file in done.stdout for file in gpu.TESTS if file.startswith("tests/"))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_short_form_runs_whole_on_a_pretended_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--quick", "--pretend", "--json", str(tmp_path / "gpu.json")]) == 0, capsys.readouterr().out
    record = json.loads((tmp_path / "gpu.json").read_text())
    states = {part["name"]: part["state"] for part in record["parts"]}
    assert states == {part.name: gpu.ENDED if part.measures else gpu.LEFT_OUT for part in gpu.PARTS}
    assert all(part["record"]["environment"]["device"] == "pretended GPU" for part in record["parts"] if part["record"])
