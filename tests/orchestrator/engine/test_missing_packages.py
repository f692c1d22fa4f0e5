"""A package that a plan needs and that is not installed is named in one line."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from orchestrator.cli.main import main
from orchestrator.engine import keyed_jobs


def test_a_missing_package_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    real = keyed_jobs.version

    def version(package: str) -> str:
        if package == "opacus":
            raise PackageNotFoundError(package)
        return real(package)

    keyed_jobs.installed.cache_clear()
    monkeypatch.setattr(keyed_jobs, "version", version)
    words = ["audit", "gnq", "gnq-smoke", "--workers", "0", "--out", f"{tmp_path}/out", "--store", f"{tmp_path}/store"]
    try:
        assert main(words) == 2
    finally:
        keyed_jobs.installed.cache_clear()
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and "needs the package opacus" in said[0] and "pip install 'orch-audit[dp]'" in said[0]
