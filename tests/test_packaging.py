"""The distribution: what is inside the package, the command, the Makefile's promises."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution, entry_points
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("orchestrator", "actors", "tune_spaces", "audits")
BIN = Path(sys.executable).parent


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def copy_of_the_packages(folder: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_nothing_unpickles() -> None:
    """But for what workers of a team tell each other in memory, once it was found to be signed by their secret."""
    signed = ROOT / "audits" / "training" / "team.py"
    unsafe = re.compile(
        r"\b(pickle|cPickle|dill|joblib)\.loads?\(|weights_only\s*=\s*False|allow_pickle\s*=\s*True|read_pickle"
    )
    for path in python_files(*PACKAGES):
        text = path.read_text()
        assert len(unsafe.findall(text)) == (path == signed), path
        for node in ast.walk(ast.parse(text)) if "load" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in ast.unparse(node), path


def test_the_console_script_resolves() -> None:
    (script,) = [entry for entry in entry_points(group="console_scripts") if entry.name == "orch"]
    assert script.value == PYPROJECT["project"]["scripts"]["orch"]
    assert callable(script.load())


def test_package_data_lies_beside_the_code() -> None:
    embedded = files("audits.data.fashion14")
    assert 8_000_000 < len((embedded / "fashion14.parquet").read_bytes()) < 9_500_000
    assert "Zalando SE" in (embedded / "LICENSE").read_text()


TAKEN = """
from setuptools import Distribution
from setuptools.config.pyprojecttoml import apply_configuration
command = apply_configuration(Distribution({"script_name": "-c"}), "pyproject.toml").get_command_obj("build_py")
command.distribution.include_package_data = False  # or all that git holds, if a plugin for it is installed
command.ensure_finalized()
print(*(name.removeprefix(f"{command.build_lib}/") for name in command.get_outputs(include_bytecode=False)), sep="\\n")
"""
"""Prints the files that go into a wheel, without making one."""


def files_of_the_packages() -> set[str]:
    """Return all files below the packages, from the root."""
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*"))
    return {path.relative_to(ROOT).as_posix() for path in found if path.is_file() and "__pycache__" not in path.parts}


def test_every_file_of_the_packages_goes_into_a_wheel() -> None:
    done = subprocess.run([sys.executable, "-c", TAKEN], cwd=ROOT, capture_output=True, text=True, check=True)
    assert files_of_the_packages() == {*done.stdout.splitlines()}


@pytest.mark.long
def test_a_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    """In short: the test above."""
    source = copy_of_the_packages(tmp_path / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, str(tmp_path), str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert files_of_the_packages() - inside == set()
    assert any(name.endswith("licenses/LICENSE") for name in inside)


def test_an_editable_installation_puts_no_relative_entry_on_the_path(tmp_path: Path) -> None:
    """One would be looked for in the working folder, by every process of this installation."""
    source = copy_of_the_packages(tmp_path / "source")
    script = f"from setuptools.build_meta import build_editable\nbuild_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", script], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "installed")
    added = f"import site, sys\nbefore = [*sys.path]\nsite.addsitedir({str(tmp_path / 'installed')!r})\n"
    told = f"{added}print(*(entry for entry in sys.path if entry not in before))\nimport audits\nprint(audits.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", told], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    entries, place = done.stdout.splitlines()
    assert entries.split() == [str(tmp_path / "installed")]
    assert place == str(source / "audits" / "__init__.py")


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert PYPROJECT["project"]["license"] == "Apache-2.0"


def test_the_version_is_the_changelogs_latest() -> None:
    latest = re.search(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert latest is not None
    assert latest[1] == PYPROJECT["project"]["version"] == distribution("orch-audit").version


def test_the_citation_names_this_version_and_the_papers_of_the_readme() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert (citation["version"], citation["license"]) == tuple(
        PYPROJECT["project"][key] for key in ("version", "license")
    )
    for paper in citation["references"]:
        assert {"type", "title", "authors"} <= paper.keys()
    cited = {paper["url"] for paper in citation["references"] if "url" in paper}
    assert cited == set(re.findall(r"https://arxiv\.org/abs/[\d.]+", (ROOT / "README.md").read_text()))


def test_hooks_before_a_commit_run_what_make_lint_runs_and_download_nothing(tmp_path: Path) -> None:
    (tmp_path / "orch-installed").touch()
    os.utime(tmp_path / "orch-installed", (2**32, 2**32))
    lint = make("--dry-run", "lint", f"VENV={tmp_path}").stdout.replace(f"{tmp_path}/", ".venv/").splitlines()
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"
    assert [hook["entry"] for hook in local["hooks"]] == lint
    assert {(hook["language"], hook["pass_filenames"]) for hook in local["hooks"]} == {("system", False)}


def make(*arguments: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env={**surroundings, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_demo_runs_the_sweep_and_make_test_lints_and_tests(tmp_path: Path) -> None:
    ready = tmp_path / "orch-installed"
    ready.touch()
    os.utime(ready, (2**32, 2**32))
    demo = make("--dry-run", "demo", f"VENV={tmp_path}").stdout
    assert demo.split() == [f"{tmp_path}/bin/orch", "sweep", "apollo-demo", "--out", "demo-out"]
    test = make("--dry-run", "test", f"VENV={tmp_path}").stdout
    for tool in (
        "ruff check",
        "ruff format --check",
        "mypy",
        "lint-imports",
        ".ci/imports.py",
        ".ci/names.py",
        "pytest",
    ):
        assert f"{tool}" in test
    assert "pip install" not in demo + test


def test_make_installs_once_per_pyproject(tmp_path: Path) -> None:
    for target in ("demo", "test", "lint"):
        script = make("--dry-run", target, f"VENV={tmp_path / 'none'}").stdout
        assert script.count("pip install") == 1
        assert "-m venv" in script


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("exit 1", "is not a Python of version 3.11 or newer"),
        ('case "$*" in *ensurepip*) exit 1;; esac', "apt-get install python3-venv"),
    ],
)
def test_make_says_in_one_line_why_no_environment_can_be_made(tmp_path: Path, body: str, says: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    result = make("install", f"VENV={tmp_path / 'none'}", f"PYTHON={python}")
    assert result.returncode != 0
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "none").exists()


def test_make_says_that_there_is_no_python(tmp_path: Path) -> None:
    for tool in ("sh", "make", "touch", "test"):
        found = shutil.which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    result = make("install", f"VENV={tmp_path / 'none'}", PATH=str(tmp_path))
    assert "no Python 3.11 or newer found" in result.stderr


def test_ci_runs_make_test() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("exec make test")
