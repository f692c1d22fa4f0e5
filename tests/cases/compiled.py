"""The compiled form of product and tests: kept, and where it is missing, made by several processes together.

One process imports all test modules. On a fresh clone it would compile them and rewrite their asserts, which takes
longer than all imports.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from audits.own.sources import OURS
from tests.cases.forked import shared

ROOT = Path(__file__).parents[2]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile all, if the suite has several processes."""
    if count := session.config.getoption("processes"):
        files = [file for top in (*OURS, "tests") for file in of_folder(ROOT / top)]
        shared(files, count, lambda share: compile_all(share, session.config))


def of_folder(folder: Path) -> list[Path]:
    """Return the source files below a folder, in the order in which tests are collected."""
    return sorted(folder.rglob("*.py"))


def compile_all(files: Iterable[Path], config: pytest.Config) -> None:
    """Leave the compiled form of files where importing them looks for it; test files are those of pytest."""
    state = config.stash[rewrite.assertstate_key]
    for file in files:
        if file.name != "conftest.py" and not file.name.startswith("test_"):
            SourceFileLoader(file.stem, str(file)).get_code(file.stem)
            continue
        kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(file, kept) is None and rewrite.try_makedirs(kept.parent):
            of_source, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(state, code, of_source, kept)
