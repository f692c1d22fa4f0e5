"""``make quick`` chooses the tests nearest to what has changed."""

from __future__ import annotations

import functools
import importlib
import subprocess
from pathlib import Path
from typing import Any

import grimp
import pytest

BUILD_ONCE = functools.cache(grimp.build_graph)
ROOT = Path(__file__).parents[1]
TEST = "tests/audits/statistics/test_chance.py"


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    monkeypatch.setattr(grimp, "build_graph", BUILD_ONCE)
    return importlib.import_module("touched")  # noqa: TID251  # of no package


def test_a_changed_test_comes_first_then_those_of_its_folder_then_who_imports_the_module(touched: Any) -> None:
    near = list(touched.tests_by_distance(["audits/statistics/chance.py", TEST], ROOT))
    assert near[0] == [TEST]
    assert TEST not in near[1] and all(file.startswith("tests/audits/statistics/") for file in near[1])
    after = [file for files in near[2:] for file in files]
    assert "tests/orchestrator/apollo/test_controls.py" in after
    assert len(after) == len(set(after)) and not set(after) & {TEST, *near[1]}


@pytest.mark.parametrize(
    ("file", "folder"), [("docs/how-to/ci.md", "tests/docs/"), ("audits/mia/gone.py", "tests/audits/mia/")]
)
def test_of_a_page_and_of_a_module_that_is_gone_those_of_their_folder_are_chosen(
    touched: Any, file: str, folder: str
) -> None:
    found = [test for near in touched.tests_by_distance([file], ROOT) for test in near]
    assert found and all(test.startswith(folder) for test in found)


def test_changed_is_what_differs_from_main_committed_or_not_and_what_is_new(touched: Any, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=tmp_path, check=True)

    def written(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text(name)

    git("init", "--quiet", "--initial-branch=main")
    written("same", "edited", "committed")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    git("checkout", "--quiet", "-b", "work")
    (tmp_path / "committed").write_text("else")
    git("commit", "--quiet", "-am", "second")
    (tmp_path / "edited").write_text("else")
    written("new")
    assert sorted(touched.changed(tmp_path)) == ["committed", "edited", "new"]


def test_files_that_take_long_are_left_out_and_counted(touched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    near = [["tests/a.py"], ["tests/long.py", "tests/b.py"], ["tests/c.py"]]
    monkeypatch.setattr(touched, "changed", lambda root: [])
    monkeypatch.setattr(touched, "tests_by_distance", lambda files, root: iter(near))
    monkeypatch.setattr(
        touched, "seconds_by_file", lambda root: {"tests/a.py": 1, "tests/b.py": 2, "tests/long.py": 500}
    )
    assert touched.chosen(ROOT) == ["tests/a.py", "tests/b.py", "tests/c.py"]
