"""Imports keep to the floors: ``make lint`` passes as the code stands and fails for what is planted in a copy of it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINTED = ("orchestrator", "actors", "tune_spaces", "audits", "tests", "benchmarks", "examples", ".ci")
INSIDE = "is imported inside a function"
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


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all that is linted."""
    folder = tmp_path_factory.mktemp("house")
    for name in LINTED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize("tool", ["ruff check", "lint-imports", ".ci/imports.py"])
def test_the_imports_pass_lint_as_they_stand(copy: Path, tool: str) -> None:
    result = run_lint(tool, copy)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "planted", "tool", "says"),
    [
        # circles
        ("audits/errors.py", "import audits.registry", ".ci/imports.py", "circle of imports: audits."),
        ("audits/errors.py", "import audits.registry", "lint-imports", "No circle of packages or modules BROKEN"),
        (
            "audits/errors.py",
            "def planted():\n    import audits.registry",
            ".ci/imports.py",
            "circle of imports: audits.",
        ),
        (
            "audits/errors.py",
            "if TYPE_CHECKING:\n    import audits.registry",
            ".ci/imports.py",
            "circle of imports: audits.",
        ),
        # an audit that imports another, above and below
        ("orchestrator/gnq/plan.py", "import orchestrator.tmia.plan", "lint-imports", f"{DOWN} in orchestrator"),
        ("audits/gnq/removal.py", "import audits.tmia.p_values", "lint-imports", f"{DOWN} in audits"),
        ("orchestrator/gnq/plan.py", "import audits.tmia.p_values", "lint-imports", "GNQ stands on audits.gnq alone"),
        ("orchestrator/mia/plan.py", "import audits.gnq.kept", "lint-imports", "MIA stands on audits.mia alone"),
        ("orchestrator/engine/kind.py", "import audits.tmia.p_values", "lint-imports", "Engine, report and workers"),
        # imports that go up
        ("audits/errors.py", "import actors", "lint-imports", f"{DOWN}: orchestrator"),
        ("actors/__init__.py", "import tune_spaces", "lint-imports", f"{DOWN}: orchestrator"),
        ("orchestrator/engine/kind.py", "import orchestrator.kinds", "lint-imports", f"{DOWN} in orchestrator"),
        ("orchestrator/engine/kind.py", "import orchestrator.report", "lint-imports", f"{DOWN} in orchestrator"),
        ("audits/data/dataset.py", "import audits.models", "lint-imports", f"{DOWN} in audits"),
        # packages with a place of their own
        ("orchestrator/__init__.py", "import ray.tune", "lint-imports", "Ray is imported"),
        ("audits/errors.py", "import mlflow", "lint-imports", "MLflow is imported"),
        ("orchestrator/__init__.py", "import mlflow.tracking", "lint-imports", "MLflow is imported"),
        ("orchestrator/__init__.py", "import click", "lint-imports", "Click is imported"),
        ("audits/errors.py", "import pydantic", "lint-imports", "Audits is a plain library"),
        # places within a file
        ("audits/errors.py", "def planted():\n    import audits.seeds", ".ci/imports.py", f"audits {INSIDE}"),
        ("audits/errors.py", "def planted():\n    from . import seeds", ".ci/imports.py", f". {INSIDE}"),
        ("audits/errors.py", "class Planted:\n    import json", ".ci/imports.py", f"json {INSIDE}"),
        ("tests/conftest.py", "def planted():\n    import yaml", ".ci/imports.py", f"yaml {INSIDE}"),
        ("orchestrator/engine/kind.py", "import torch", "ruff check", "`torch` is banned at the module level"),
        ("tune_spaces/registry.py", "from ray import tune", "ruff check", "`ray` is banned at the module level"),
        ("audits/seeds.py", "import importlib\nimportlib.import_module('json')", "ruff check", "TID251"),
    ],
)
def test_lint_notices_what_is_planted(copy: Path, place: str, planted: str, tool: str, says: str) -> None:
    file = copy / place
    before = file.read_text()
    file.write_text(f"{before}\n\n{planted}\n")
    try:
        result = run_lint(tool, copy)
    finally:
        file.write_text(before)
    assert result.returncode == 1
    breaches = [line for line in result.stdout.splitlines() if "KEPT" not in line]
    assert any(says in line for line in breaches), result.stdout


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
