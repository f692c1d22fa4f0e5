"""What is made once for all tests and processes, and kept for the next run while code and libraries are the same.

It lies in the cache of pytest. Whoever finds it missing makes it, the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.pool import NullPool

from audits.own.sources import OURS
from orchestrator.engine.media import file_name
from orchestrator.engine.run.tracking_server import quiet_mlflow
from orchestrator.report import writing
from tests.cases.runs import all_drawn, audited
from tests.cases.smallest_plans import smallest_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
DONE = "done"
"""File of a folder that is whole."""
EMPTY = "empty-mlflow.db"
MADE_WITH = ("torch", "numpy", "scipy", "scikit-learn", "pyarrow", "matplotlib", "mlflow")
"""Of other versions a run may have other numbers, and its files other bytes."""
DRAWN = ("mia",)
"""Runs whose page is looked at."""
KEPT: list[Path] = []
"""The folder of this session."""


def pytest_configure(config: pytest.Config) -> None:
    """Settle where things are kept."""
    held = getattr(config, "cache", None)
    KEPT[:] = [held.mkdir("orch")] if held is not None else [Path(tempfile.mkdtemp(prefix="orch-kept-"))]


def finished(name: str, into: Path | None = None) -> Path:
    """Return the folder of a finished run of the smallest plan ``name``, with its page and its MLflow database.

    Figures of those in ``DRAWN`` are drawn as SVG alone: PNG takes as long, and those files are empty. Those of the
    others are sketched.
    Its store is ``store`` beside it. Nobody may change either: who has to names a folder ``into`` which a copy of the
    run is put (its plan names the kept store all the same).
    """
    run = folder(f"{name} {of_code()}", lambda place: made(name, place)) / "out"
    return run if into is None else Path(shutil.copytree(run, into))


def made(name: str, place: Path) -> None:
    """Carry out the smallest plan ``name``."""
    from matplotlib.figure import Figure

    save = Figure.savefig

    def as_svg(figure: Figure, file: Any, *, format: str, **how: Any) -> None:
        if format == "svg":
            save(figure, file, format=format, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", as_svg)
        if name not in DRAWN:
            patch.setattr(writing, "save", sketch)
        audited(smallest_plan(name, place / "store"), place / "out", shown=True)
    warnings = json.loads((place / "out" / "result.json").read_text())["warnings"]
    assert not any(each.startswith("not tracked") for each in warnings), f"a run that was disturbed: {warnings}"


def sketch(figure: Figure, name: str, folder: Path) -> str:
    """Write a figure's files without drawing, which takes longest of all of a small run; return the SVG, as ``save``.

    The figure was made of the numbers of the run, and these are in its CSV, as in any other.
    """
    folder.mkdir(exist_ok=True)
    svg = "<svg viewBox='0 0 1 1'></svg>"
    for end, text in (("svg", svg), ("png", "")):
        (folder / f"{file_name(name)}.{end}").write_text(text)
    return svg


def folder(name: str, make: Any) -> Path:
    """Return the kept folder ``name``; ``make`` fills it if it is not there."""
    place = KEPT[0] / name.replace(", ", "-").replace(" ", "-")
    if not (place / DONE).exists():
        with alone(place):
            if not (place / DONE).exists():
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir(parents=True)
                with all_drawn():
                    make(place)
                (place / DONE).touch()
    return place


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Hold a kept folder against the other processes of the suite."""
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def of_code() -> str:
    """Return the hash of all that a run of a plan is made by, and clear away what was made by something else."""
    total = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in MADE_WITH).encode())
    made_by = [*(ROOT / top for top in OURS), Path(__file__), Path(__file__).with_name("smallest_plans.py")]
    for top in made_by:
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and file.suffix != ".pyc":
                total.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    code = total.hexdigest()[:12]
    for old in KEPT[0].glob("*"):
        if not old.name.removesuffix(".lock").endswith((code, version("mlflow"))):
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    return code


@event.listens_for(Engine, "do_connect")
def copy_the_empty_database(dialect: Any, _: Any, arguments: Any, __: Any) -> None:
    """Give MLflow an empty database that is already as its latest version wants it.

    To make one takes MLflow some four seconds, more than a small audit.
    """
    name = str(arguments[0]) if dialect.name == "sqlite" and arguments else ":memory:"
    file = Path(name)
    if name.startswith((":memory:", "file:")) or file.exists() or name.endswith(EMPTY):
        return
    with suppress(OSError):  # what is wrong with its folder MLflow finds out itself
        shutil.copyfile(empty_mlflow(), file)


def empty_mlflow() -> Path:
    """Return MLflow's empty database, to be copied where a run in another process will look for its own."""
    return folder(f"mlflow-{version('mlflow')}", empty_database) / EMPTY


def empty_database(place: Path) -> None:
    """Let MLflow make its tables."""
    from mlflow.store.db.utils import _initialize_tables

    with quiet_mlflow():
        engine = create_engine(f"sqlite:///{place / EMPTY}", poolclass=NullPool)
        _initialize_tables(engine)
        engine.dispose()
