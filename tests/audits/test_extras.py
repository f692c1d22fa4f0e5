"""How packages of extras are installed is read from the metadata of the installation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from typing import NoReturn

import pytest

from audits import extras
from tests.cases.families import as_one


@as_one(
    "package, extra",
    [("opacus", "dp"), ("transformers", "text"), ("onnxruntime", "onnx"), ("optuna", "tune"), ("ray", "cluster")],
)
def test_a_package_is_installed_by_the_extra_that_is_for_it(package: str, extra: str) -> None:
    assert extras.command(package) == f"pip install 'orch-audit[{extra}]'"


def test_another_package_is_named_itself() -> None:
    assert extras.command("numpy") == "pip install numpy"


def test_where_orch_is_not_installed_the_package_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", unknown)
    assert extras.command("opacus") == "pip install opacus"
