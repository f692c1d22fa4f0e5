"""The wheel in an empty environment: the command, all that the package brings along, and a whole audit."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.test_packaging import PACKAGES, copy_of_the_packages

LISTED = ("attacks", "sweeps", "plans")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an environment ``env`` in which the wheel is installed, and nothing else of ours.

    The packages that we depend on are those of this environment: a .pth file names its folder, whose own .pth files,
    by which our checkout may be importable, are not read.
    """
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*build, str(copy_of_the_packages(source))], check=True)
    shutil.rmtree(source)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    (own,) = (folder / "env").glob("lib/python*/site-packages")
    subprocess.run([*pip, "--python", str(folder / "env/bin/python"), "install", "--no-deps", str(wheel)], check=True)
    (own / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder


def run(folder: Path, *command: str) -> str:
    """Return what a command of the environment prints, run where no file of the checkout is importable."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ORCH_STORE")}
    program, *rest = command
    done = subprocess.run(
        [str(folder / "env/bin" / program), *rest], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_our_packages_are_those_of_the_wheel(folder: Path) -> None:
    script = f"import {', '.join(PACKAGES)}; print(*(each.__file__ for each in ({', '.join(PACKAGES)})), sep='\\n')"
    places = run(folder, "python", "-c", script).splitlines()
    assert len(places) == len(PACKAGES)
    assert all(place.startswith(str(folder / "env" / "lib")) for place in places)


@pytest.mark.long
def test_an_audit_runs_from_the_wheel_and_leaves_all_its_files(folder: Path) -> None:
    for name in LISTED:
        assert run(folder, "orch", "ls", name).strip()
    assert json.loads(run(folder, "orch", "schema", "apollo"))["properties"]["kind"] == {"const": "apollo"}
    assert "orch 0." in run(folder, "orch", "--version")
    told = run(folder, "orch", "audit", "apollo", "apollo-smoke", "--workers", "0", "--out", "audit")
    assert "report: audit/report.html" in told
    written = {path.name for path in (folder / "audit").iterdir()}
    assert {"result.json", "scores.parquet", "plan.yaml", "report.html", "figures"} <= written
    assert json.loads((folder / "audit/result.json").read_text())["kind"] == "apollo"
    assert "is valid" in run(folder, "orch", "validate")  # the embedded data, 9 MB of Parquet
    assert run(folder, "orch", "cp", "mia-epochs", "mine.yaml")
