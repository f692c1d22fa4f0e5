"""Settings that every test runs under: one thread, nothing of the caller's surroundings."""

from __future__ import annotations

import ast
import logging
import os
import sqlite3
import sys

# Read when torch and Ray are first imported, so set before any test module is.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.update(RAY_worker_niceness="0")  # 15 by default: workers would wait for the tests beside theirs
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asked otherwise, CUDA is of no use in forks
os.environ["ORCH_CACHE"] = ""  # nothing is remembered of the files of other tests
for name in ("ORCH_DATA", "MLFLOW_TRACKING_URI", "RAY_ADDRESS", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(name, None)
sys.dont_write_bytecode = False  # or every process of the suite compiles product and tests anew

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from sqlalchemy import Engine, event

from actors.cluster import connect
from actors.jobs import Workers
from audits import credentials
from audits.own import sources
from orchestrator.engine.run import output_folder
from tests.cases.schemas import misfits

PLUGINS = ("collected", "forked", "compiled", "kept", "programs", "seconds", "unended")
pytest_plugins = [f"tests.cases.{name}" for name in PLUGINS]

torch.set_num_threads(1)
for logger in logging.root.manager.loggerDict.values():
    if isinstance(logger, logging.Logger):
        logger.propagate = True  # pytest attaches itself to every one that does not, several times a test
hypothesis.settings.register_profile("orch", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("orch")


@event.listens_for(Engine, "connect")
def never_wait_for_the_disk(connection: Any, _: Any) -> None:
    """Let databases of MLflow not wait for the disk, as they do some hundred times while one is made."""
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.DatabaseError):  # MLflow finds out itself what is no database
            connection.execute("PRAGMA synchronous = OFF")


def ray_settings() -> dict[str, str]:
    """Return the variables that could change what other processes, or a later cluster, do."""
    known = {k: v for k, v in os.environ.items() if k.startswith(("RAY_", "TUNE_", "OMP_", "PYTHONPATH"))}
    return {k: v for k, v in known.items() if k != "RAY_CLIENT_MODE"}  # set by importing Ray


SHARED = ExitStack()
"""The cluster of this process. It ends behind the last test that may use it: where Ray's raylet dies, it takes the
process with it, whatever test is at work."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Two workers on a private Ray cluster for all tests that break nothing of it; runs of this process join it.

    The name of its folder is too long for sockets.
    """
    folder = tmp_path_factory.mktemp("a-folder-whose-name-is-long-" + "x" * 60)
    SHARED.enter_context(private_cluster(folder))
    yield Workers(2, storage=str(folder))
    SHARED.close()


@contextmanager
def private_cluster(folder: Path) -> Iterator[None]:
    """Hold the cluster; in the end it has left nothing, neither files nor variables."""
    before = ray_settings()
    with connect(Workers(2, storage=str(folder))):
        yield
    assert list(folder.iterdir()) == []
    assert ray_settings() == before


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the cluster where no test follows that may use it."""
    if nextitem is None or not on_a_cluster(nextitem.path, long_too(item.config)):
        SHARED.close()


@cache
def on_a_cluster(file: Path, long: bool) -> bool:
    """Say whether tests of a file need a Ray cluster: it marks them so. ``long``: also tests that are marked long."""
    text = file.read_text(encoding="utf-8")
    if long or "pytest.mark.cluster" not in text:
        return "pytest.mark.cluster" in text
    nodes = ast.parse(text).body
    assigned = [ast.unparse(node) for node in nodes if isinstance(node, ast.Assign)]
    of_all = [line for line in assigned if line.startswith("pytestmark = ")]
    marks = [{ast.unparse(each) for each in node.decorator_list} for node in nodes if isinstance(node, ast.FunctionDef)]
    single = any("pytest.mark.cluster" in own and "pytest.mark.long" not in own for own in marks)
    return single or any("pytest.mark.cluster" in line for line in of_all)


def long_too(config: pytest.Config) -> bool:
    """Say whether tests that are marked long are not left out."""
    return "not long" not in config.getoption("markexpr")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first, those with clusters before all; skip ``gpu`` tests without a GPU.

    One process runs all those with clusters, which thus run in turn.
    """
    clusters = {file for file in {item.path for item in items} if on_a_cluster(file, long_too(config))}
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in clusters, item.path not in slow))  # stable
    for item in items:
        if item.path in clusters:
            item.add_marker(pytest.mark.together("clusters"))
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no accelerator on this machine"))


@pytest.fixture(autouse=True)
def secrets_of_a_test_are_its_own() -> Iterator[None]:
    """Forget the credentials that a test made up: a later message may hold such a word."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_secrets", set(credentials._secrets))
        patch.setattr(credentials, "_real", dict(credentials._real))
        yield


@pytest.fixture(scope="module", autouse=True)
def modules_of_a_test_are_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the modules that the tests of a file wrote and imported: another file may have one of that name."""
    before, written = {*sys.modules}, str(tmp_path_factory.getbasetemp())
    yield
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(written):
            sources.forget(name)


@pytest.fixture(scope="session", autouse=True)
def files_do_not_wait_for_the_disk() -> Iterator[None]:
    """Leave out that artefacts are on the disk before they have their names: a store of many small ones waits long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def every_result_fits_its_schema() -> Iterator[None]:
    """Hold every result.json that a test writes here to its published schema."""
    write = output_folder.write_document

    def checked(out: Path, document: Mapping[str, Any]) -> None:
        assert not (found := misfits(document)), found
        write(out, document)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_folder, "write_document", checked)
        yield
