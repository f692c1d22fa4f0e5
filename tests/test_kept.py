"""What is made once for the whole suite is what each test would have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlflow.store.db import utils
from sqlalchemy import create_engine

from orchestrator.report import writing
from tests.cases import kept
from tests.cases.kept import finished, folder
from tests.cases.runs import audited, draw_only
from tests.cases.smallest_plans import smallest_plan


def test_a_new_database_is_as_mlflow_wants_it(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'new.db'}")
    mlflow: Any = utils  # untyped
    assert mlflow._all_tables_exist(engine)
    assert mlflow._get_schema_version(engine) == mlflow._get_latest_schema_revision()


def test_a_finished_run_has_the_scores_of_a_new_one_and_is_made_once(tmp_path: Path) -> None:
    found = finished("mia, given")
    audited(smallest_plan("mia, given", tmp_path / "store"), tmp_path / "out")
    assert (found / "scores.parquet").read_bytes() == (tmp_path / "out" / "scores.parquet").read_bytes()
    before = (found / "result.json").stat().st_mtime_ns
    mine = finished("mia, given", tmp_path / "mine")
    assert {file.name for file in mine.iterdir()} >= {"report.html", "plan.yaml", "result.json", "mlflow.db"}
    assert (found / "result.json").stat().st_mtime_ns == before


def test_what_failed_halfway_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT", [tmp_path])

    def breaks(place: Path) -> None:
        (place / "half").touch()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        folder("halfway", breaks)
    files = folder("halfway", lambda place: (place / "whole").touch()).iterdir()
    assert {file.name for file in files} == {"whole", "done"}


def test_what_is_kept_has_all_its_figures_whatever_a_test_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch)
    made = folder("figures", lambda place: (place / writing.draw.__name__).touch())
    assert writing.draw.__name__ not in {file.name for file in made.iterdir()}
