"""Imports keep to the floors: ``make lint`` passes as the code stands and fails for what is planted in a copy of it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINTED = ("orchestrator", "actors", "tune_spaces", "audits", "tests", "benchmarks", "examples", ".ci")
INSIDE = "is imported inside a function"
CIRCLE = "audits.errors -> audits.registry"
DOWN = "Imports go down only"


def run_lint(tool: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the line of ``make lint`` that holds the word ``tool`` on ``folder``."""
    ready = ROOT / "pyproject.toml"  # make finds nothing to install
    makefile = ["make", "--dry-run", "lint", "VENV=ENVIRONMENT", f"STAMP={ready}"]
    said = subprocess.run(makefile, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (command,) = (line.split() for line in said.splitlines() if tool in line)
    assert command[0].startswith("ENVIRONMENT/bin/")
    return subprocess.run(
        [str(Path(sys.executable).parent / Path(command[0]).name), *command[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def copied(folder: Path) -> Path:
    """Copy all that is linted into ``folder``."""
    for name in LINTED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all that is linted."""
    return copied(tmp_path_factory.mktemp("house"))


@pytest.mark.long
@pytest.mark.parametrize("tool", ["ruff check", "lint-imports", ".ci/imports.py"])
def test_the_imports_pass_lint_as_they_stand(copy: Path, tool: str) -> None:
    """In short: ``make lint``, which ``make test`` runs."""
    result = run_lint(tool, copy)
    assert result.returncode == 0, result.stdout + result.stderr


# file, what is planted at its end, the contract that it breaks, the import that the contract names
BROKEN = [
    # circles
    ("audits/errors.py", "import audits.registry", "No circle of packages or modules", ".errors -> .registry (1 "),
    # an audit that imports another, above and below
    (
        "orchestrator/gnq/plan.py",
        "import orchestrator.tmia.plan",
        f"{DOWN} in orchestrator",
        "orchestrator.gnq.plan -> orchestrator.tmia.plan (l.",
    ),
    (
        "audits/gnq/removal.py",
        "import audits.tmia.p_values",
        f"{DOWN} in audits",
        "audits.gnq.removal -> audits.tmia.p_values (l.",
    ),
    (
        "orchestrator/gnq/plan.py",
        "import audits.tmia.p_values",
        "GNQ stands on audits.gnq alone",
        "orchestrator.gnq.plan -> audits.tmia.p_values (l.",
    ),
    (
        "orchestrator/mia/plan.py",
        "import audits.gnq.kept",
        "MIA stands on audits.mia alone",
        "orchestrator.mia.plan -> audits.gnq.kept (l.",
    ),
    (
        "orchestrator/engine/kind.py",
        "import audits.tmia.p_values",
        "Engine, report and workers",
        "orchestrator.engine.kind -> audits.tmia.p_values (l.",
    ),
    # imports that go up
    ("audits/errors.py", "import actors", f"{DOWN}: orchestrator", "audits.errors -> actors (l."),
    ("actors/__init__.py", "import tune_spaces", f"{DOWN}: orchestrator", "actors -> tune_spaces (l."),
    (
        "orchestrator/engine/kind.py",
        "import orchestrator.kinds",
        f"{DOWN} in orchestrator",
        "orchestrator.engine.kind -> orchestrator.kinds (l.",
    ),
    (
        "orchestrator/engine/kind.py",
        "import orchestrator.report",
        f"{DOWN} in orchestrator",
        "orchestrator.engine.kind -> orchestrator.report (l.",
    ),
    (
        "audits/data/dataset.py",
        "import audits.models",
        f"{DOWN} in audits",
        "audits.data.dataset -> audits.models (l.",
    ),
    # packages with a place of their own
    ("orchestrator/__init__.py", "import ray.tune", "Ray is imported", "orchestrator -> ray (l."),
    ("audits/errors.py", "import mlflow", "MLflow is imported", "audits.errors -> mlflow (l."),
    ("orchestrator/__init__.py", "import mlflow.tracking", "MLflow is imported", "orchestrator -> mlflow (l."),
    ("orchestrator/__init__.py", "import click", "Click is imported", "orchestrator -> click (l."),
    ("audits/errors.py", "import pydantic", "Audits is a plain library", "audits.errors -> pydantic (l."),
]


def plant(folder: Path, place: str, planted: str) -> None:
    with (folder / place).open("a") as file:
        file.write(f"\n\n{planted}\n")


@pytest.fixture(scope="module")
def broken_contracts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What ``lint-imports`` says of each contract in a copy with everything planted, by the contract's name."""
    folder = copied(tmp_path_factory.mktemp("planted"))
    for place, planted, *_ in BROKEN:
        plant(folder, place, planted)
    result = run_lint("lint-imports", folder)
    assert result.returncode == 1
    said = result.stdout.partition("Broken contracts\n")[2]
    headings = re.split(r"^(.+)\n-{8,}$", said, flags=re.MULTILINE)
    return dict(zip(headings[1::2], headings[2::2], strict=True))


@pytest.mark.parametrize(("place", "planted", "contract", "edge"), BROKEN)
def test_contracts_name_each_import_that_is_planted(
    broken_contracts: dict[str, str], place: str, planted: str, contract: str, edge: str
) -> None:
    (said,) = (text for name, text in broken_contracts.items() if name.startswith(contract))
    assert re.search(rf"^-? *{re.escape(edge)}", said, flags=re.MULTILINE), said


@pytest.mark.parametrize(
    ("place", "planted", "tool", "says"),
    [
        ("audits/errors.py", "import audits.registry", ".ci/imports.py", CIRCLE),
        ("audits/errors.py", "def planted():\n    import audits.registry", ".ci/imports.py", CIRCLE),
        ("audits/errors.py", "if TYPE_CHECKING:\n    import audits.registry", ".ci/imports.py", CIRCLE),
        ("audits/errors.py", "def planted():\n    import audits.seeds", ".ci/imports.py", f"audits {INSIDE}"),
        ("audits/errors.py", "def planted():\n    from . import seeds", ".ci/imports.py", f". {INSIDE}"),
        ("audits/errors.py", "class Planted:\n    import json", ".ci/imports.py", f"json {INSIDE}"),
        ("tests/conftest.py", "def planted():\n    import yaml", ".ci/imports.py", f"yaml {INSIDE}"),
        ("orchestrator/engine/kind.py", "import torch", "ruff check", "`torch` is banned at the module level"),
        ("tune_spaces/registry.py", "from ray import tune", "ruff check", "`ray` is banned at the module level"),
        ("audits/seeds.py", "import importlib\nimportlib.import_module('json')", "ruff check", "TID251"),
    ],
)
def test_lint_notices_what_is_planted(tmp_path: Path, place: str, planted: str, tool: str, says: str) -> None:
    few = ["audits/errors.py", "audits/registry.py", "tests/conftest.py", place]  # what is planted is among these
    empty = [f"{package}/__init__.py" for package in ("orchestrator", "actors", "tune_spaces", "audits")]
    for name in (*few, *empty):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text() if name in few else "")
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    before = run_lint(tool, tmp_path)
    assert before.returncode == 0, before.stdout
    plant(tmp_path, place, planted)
    result = run_lint(tool, tmp_path)
    assert result.returncode == 1
    assert says in result.stdout


@pytest.mark.parametrize(
    ("planted", "line"), [('"""What is planted."""', 1), ('"""A plant."""\n\n\ndef _told() -> None: ...', 4)]
)
def test_a_name_that_names_nothing_is_refused(planted: str, line: int, tmp_path: Path) -> None:
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert run_lint(".ci/names.py", tmp_path).returncode == 0
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits" / "planted.py").write_text(f"{planted}\n")
    result = run_lint(".ci/names.py", tmp_path)
    assert result.returncode == 1 and f"audits/planted.py:{line}" in result.stdout


def test_tune_spaces_import_ray_inside_space_only() -> None:
    def imports_ray(node: ast.AST) -> bool:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        return any(module.split(".")[0] == "ray" for module in modules)

    for path in (ROOT / "tune_spaces").rglob("*.py"):
        tree = ast.parse(path.read_text())
        inside = {
            id(child)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name.endswith("space")
            for child in ast.walk(node)
        }
        assert not [node for node in ast.walk(tree) if imports_ray(node) and id(node) not in inside], path
