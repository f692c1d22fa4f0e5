"""Code of users on workers: found wherever they work, and refused where it is missing or another."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from actors.cluster import _source_packages
from actors.jobs import Unfit, Workers
from audits.errors import BadInput
from orchestrator.cli.session import Session
from orchestrator.cli.submit import start
from orchestrator.cli.submitted_work import read_command
from orchestrator.engine.own_code import OwnCode, own_code
from orchestrator.engine.run.worker import OpenContexts
from orchestrator.kinds import kind_named
from tests.cases.own_components import edit, own_plan
from tests.cases.runs import audited

ROOT = Path(__file__).resolve().parents[3]


def test_all_modules_that_a_plan_reaches_are_named_and_travel(folder: Path, tmp_path: Path) -> None:
    code = own_code([own_plan(tmp_path).resolved()])
    assert set(code.versions) == {"nets", "scaling", "forgetting", "rates", "attacking"}
    assert code.folders == (str(folder),)
    assert {place.name for place in code.places} == {f"{module}.py" for module in code.versions}
    shipped = {Path(place).name for place in _source_packages()["py_modules"]}
    assert {"audits", "orchestrator", "nets.py", "forgetting.py", "attacking.py"} <= shipped


def require(code: OwnCode, *places: Path) -> str:
    """Return what a new process says that has ``places`` on its Python path, and was shipped ``code``."""
    script = (
        "from orchestrator.engine.own_code import OwnCode\n"
        f"try:\n    OwnCode({dict(code.versions)!r}, {code.folders!r}).require()\nexcept ValueError as error:\n"
        "    print(error)\n"
    )
    path = ":".join(map(str, (ROOT, *places)))
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True, cwd="/"
    )
    return done.stdout


@pytest.mark.long
def test_a_worker_without_the_code_or_with_another_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    code = own_code([own_plan(tmp_path).resolved()])
    assert require(code) == "", "the driver's folder is there"
    away = OwnCode(code.versions, ("/no/such/folder",))
    assert require(away).startswith("module attacking is not on ")
    apart = [tmp_path / f"part-{number}" for number in range(len(code.places))]
    for place, file in zip(apart, code.places, strict=True):  # as Ray unpacks what was shipped
        place.mkdir()
        shutil.copy(file, place)
    assert require(away, *apart) == ""
    edit(next(place for place in apart if (place / "scaling.py").exists()) / "scaling.py", "1.0", "1.5")
    assert "module scaling has another source on " in require(away, *apart)


def test_a_cluster_leaves_such_a_machine_out_and_a_run_on_one_machine_ends(folder: Path, tmp_path: Path) -> None:
    plan = own_plan(tmp_path)
    code = OwnCode({**own_code([plan.resolved()]).versions, "nets": "another"})
    for address, error in ((None, BadInput), ("auto", Unfit)):
        values = {plan.plan_hash: plan.changed({"compute.address": address}).resolved()}
        contexts = OpenContexts(kind_named("apollo"), values, str(tmp_path), "cpu", "", code=code)
        with pytest.raises(error, match="module nets has another source"):
            contexts.open(plan.plan_hash)


def test_a_submitted_job_takes_the_code_along(folder: Path, tmp_path: Path) -> None:
    sent: list[Path] = []

    class Server:
        def submit(self, name: str, entrypoint: str, place: Path, variables: dict[str, str]) -> None:
            sent.extend(sorted(place.iterdir()))
            assert "--allow-code" in entrypoint

    words = ["audit", "apollo", "apollo-smoke", "--set", "model={name: 'python:nets:SmallNet'}", "--store", "/shared"]
    start(Server(), read_command(Session(), words))  # type: ignore[arg-type]  # as much of a server as start asks for
    assert {"nets.py", "scaling.py"} <= {path.name for path in sent}


@pytest.mark.long
@pytest.mark.cluster
def test_two_workers_give_the_bits_of_one_process(folder: Path, tmp_path: Path, cluster: Workers) -> None:
    alone = audited(own_plan(tmp_path / "alone"), tmp_path / "out")
    both = audited(own_plan(tmp_path / "both", **{"compute.workers": 2}), tmp_path / "out2")
    assert both.scores.equals(alone.scores)
