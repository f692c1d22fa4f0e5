"""Compiled code is kept, and each process of the suite makes a share of it."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.cases.compiled import compile_all, of_folder


def test_processes_keep_what_they_compile() -> None:
    assert not sys.dont_write_bytecode and "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_both_kinds_of_files_are_found_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plain_file.py").write_text("WORD = 'plain'\n")
    (tmp_path / "test_of_a_share.py").write_text("def test_it():\n    kept = [1]\n    assert kept == [2]\n")
    compile_all(of_folder(tmp_path), pytestconfig)
    assert Path(cache_from_source(str(tmp_path / "plain_file.py"))).is_file()

    def never(*_: object) -> None:
        raise AssertionError("compiled once more")

    monkeypatch.setattr(rewrite, "_rewrite_test", never)
    compile_all(of_folder(tmp_path), pytestconfig)
    try:
        module = importlib.import_module("test_of_a_share")  # noqa: TID251  # a file that was just written
        with pytest.raises(AssertionError, match=r"\[1\] == \[2\]"):  # asserts are rewritten
            module.test_it()
    finally:
        sys.modules.pop("test_of_a_share", None)
