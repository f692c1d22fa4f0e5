"""What is made once for the whole suite is what each test would have made."""

from __future__ import annotations

from importlib.metadata import version
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


@pytest.mark.long
def test_a_finished_run_has_the_scores_of_a_new_one_and_is_made_once(tmp_path: Path) -> None:
    """In short: the tests of each kind, which compare numbers of a finished run with those that they work out."""
    run = finished("mia, given")
    audited(smallest_plan("mia, given", tmp_path / "store"), tmp_path / "out")
    assert (run / "scores.parquet").read_bytes() == (tmp_path / "out" / "scores.parquet").read_bytes()
    before = (run / "result.json").stat().st_mtime_ns
    mine = finished("mia, given", tmp_path / "mine")
    assert {file.name for file in mine.iterdir()} >= {"report.html", "plan.yaml", "result.json", "mlflow.db"}
    assert (run / "result.json").stat().st_mtime_ns == before


def test_what_other_versions_made_is_no_longer_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = kept.of_code.__wrapped__
    monkeypatch.setattr(kept, "KEPT", [tmp_path])
    now = hashed()
    (tmp_path / f"mia-{now}").mkdir()
    assert hashed() == now and (tmp_path / f"mia-{now}").is_dir()
    monkeypatch.setattr(kept, "version", lambda name: "0.0" if name == "torch" else version(name))
    assert hashed() != now and not (tmp_path / f"mia-{now}").exists()


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
    monkeypatch.setattr(kept, "KEPT", [tmp_path])
    draw, seen = writing.draw, list[object]()
    draw_only(monkeypatch)
    folder("figures", lambda _: seen.append(writing.draw))
    assert seen == [draw] and writing.draw is not draw
