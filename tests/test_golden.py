"""``make golden`` puts what orch says now into tests, and nothing else."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CI = Path(__file__).parents[1] / ".ci"


@pytest.fixture
def quotes(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(CI))
    return importlib.import_module("quotes")  # noqa: TID251  # of no package


@pytest.mark.parametrize(
    ("was", "text", "now"),
    [
        ("no leak was found here", "Verdict. No more: no leak is found here. The rest.", "no leak is found here"),
        ("no leak was found", "a leak; so far no leak has been found, said the rest", "no leak has been found"),
        ("of all points", "<p>the rate of every point</p><p>of all the points asked</p>", "of all the points"),
        ("audit has ended well", "the audit has ended badly", "audit has ended badly"),
        (" of 3 models ", "out of 4 models in all", " of 4 models "),
        ("no leak was found", "everything else is said instead", None),
    ],
)
def test_the_nearest_words_are_taken_and_none_where_few_are_left(
    quotes: Any, was: str, text: str, now: str | None
) -> None:
    assert quotes.closest(was, text) == now


@pytest.mark.parametrize(
    ("was", "message", "now"),
    [
        ("no column 'y'", "there's no column named 'y' in a.csv", "no column named 'y'"),
        ("is 3.*allowed: 1 to 2", "recipe.epochs is 3: permitted: 1 to 2", "is 3.*permitted: 1 to 2"),
        (r"has 2 rows \(of 3\)", "the file has 2 lines (of 3) too many", r"has 2 lines \(of 3\)"),
        ("one|the other", "neither one of both", None),
        (r"\d+ rows are left", "3 lines are left", None),
    ],
)
def test_a_pattern_stays_one_and_what_is_more_than_words_is_left_alone(
    quotes: Any, was: str, message: str, now: str | None
) -> None:
    assert quotes.new_pattern(was, message) == now


@pytest.mark.parametrize(
    ("how", "was", "now", "edits", "put"),
    [
        ("part", "leaks in 3 of 4 models", "so it leaks in 0 of 4 models now", (), None),
        ("either", "an AUC of .62 is found", "an AUC of .50 is found", (), None),
        ("pattern", "epochs is 3.*allowed: 1 to 2", "epochs is 3: allowed: 1 to 9", (), None),
        ("either", "not confirmed", "confirmed", (), None),
        ("part", "no leak was found", "a leak was found", (), None),
        ("part", "up to 5 points", "on up to 6 points", [("on up to 5 points", "on up to 6 points")], "up to 6 points"),
        ("part", "no leak was found", "no leak is found", (), "no leak is found"),
    ],
)
def test_a_number_or_a_no_that_no_edit_changed_stays_a_failure(
    quotes: Any, how: str, was: str, now: str, edits: Any, put: str | None, tmp_path: Path
) -> None:
    test = tmp_path / "tests" / "test_it.py"
    test.parent.mkdir()
    test.write_text(f"def test_it():\n    f({was!r})\n")
    found = quotes.renewed(tmp_path, edits, "tests/test_it.py::test_it", how, was, now)
    assert found == (put and test) and test.read_text() == f"def test_it():\n    f({put or was!r})\n"


def test_a_sentence_of_a_test_that_has_nothing_to_do_with_it_stays(quotes: Any, tmp_path: Path) -> None:
    files = {name: tmp_path / "tests" / f"{name}.py" for name in ("test_a", "test_it", "words", "test_words")}
    files["test_a"].parent.mkdir()
    for file in files.values():
        file.write_text("SAYS = 'no leak was found'\n")
    files["test_it"].write_text("from tests import words\nfrom tests.words import SAYS\n")
    found = quotes.renewed(tmp_path, (), "tests/test_it.py::test_it", "either", "no leak was found", "no leak is found")
    assert found == files["words"] and "is found" in files["words"].read_text()
    assert all("was found" in files[name].read_text() for name in ("test_a", "test_words"))


SOURCE = """\
def test_one():
    assert "no leak was found" in page


def test_other(n):
    with raises(BadInput, match="no leak was found"):
        f(f"é {n} of {m} models said so", "no leak " "was found")
"""


def test_only_the_string_of_the_test_changes_and_values_in_it_stay(quotes: Any) -> None:
    one = quotes.in_source(SOURCE, "no leak was found", "no leak is found", "test_one")
    assert one == SOURCE.replace('"no leak was found" in', "'no leak is found' in")
    other = quotes.in_source(SOURCE, "no leak was found", 'a "leak" is found', "test_other")
    assert other.count("""'a "leak" is found'""") == 2 and '"no leak was found" in page' in other
    value = quotes.in_source(SOURCE, "é 3 of 4 models said so", "é 3 of all 4 models said it", "test_other")
    assert value == SOURCE.replace("é {n} of {m} models said so", "é {n} of all {m} models said it")
    assert quotes.in_source(SOURCE, "another sentence", "something", "test_one") is None


PRODUCT = """\
def refuse(name):
    raise ValueError(f"{name} cannot be read: give a file of numbers")


def told():
    return ["first line", "the audit has ended and nothing leaks, by 3 attacks"]
"""
GONE = "the audit has ended and nothing leaks"
TEST = """\
import pytest
from orchestrator.said import refuse, told

SAYS = [("a.csv", r"a\\.csv cannot be read")]


@pytest.mark.parametrize(("name", "says"), SAYS)
def test_refused(name, says):
    with pytest.raises(ValueError, match=says):
        refuse(name)


def test_told():
    assert "nothing leaks" in told()[1]
    heard, says = told()[1], "nothing leaks, by 3 attacks"
    assert heard.endswith(f"and {says}")
    assert told() == ["first line", "the audit has ended and nothing leaks, by 3 attacks"]
    assert len(told()) == 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and one test that holds its sentences."""
    for name, text in {
        "orchestrator/said.py": PRODUCT,
        "orchestrator/__init__.py": "",
        "tests/test_said.py": TEST,
        "tests/orchestrator/test_golden_texts.py": "def test_nothing():\n    pass\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "."], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    return tmp_path


def golden(project: Path) -> int:
    """Renew the tests of ``project``; return the exit status."""
    script = (
        f"import pathlib, sys; sys.path.insert(0, {str(CI)!r}); import golden; "
        "sys.exit(golden.main([], pathlib.Path()))"
    )
    paths = {"PYTHONPATH": str(project), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run([sys.executable, "-c", script], cwd=project, env={**os.environ, **paths}).returncode


@pytest.mark.long
def test_sentences_that_changed_are_renewed_and_numbers_and_lost_sentences_stay_failures(project: Path) -> None:
    said, test = project / "orchestrator" / "said.py", project / "tests" / "test_said.py"
    lost = "from orchestrator.said import refuse, told\n\n\ndef test_lost():\n    assert len(told()) == 3\n"
    (project / "tests" / "test_lost.py").write_text(f'{lost}\n\ndef test_gone():\n    assert "{GONE}" in told()[0]\n')
    product = PRODUCT.replace("cannot be read", "cannot be opened").replace("leaks, by", "has leaked, by")
    said.write_text(product, "utf-8")
    assert golden(project) == 1
    now = test.read_text("utf-8")
    assert now.count("cannot be opened") == 1 and "nothing leaks" not in now
    assert now.count("nothing has leaked") == 3
    assert "len(told()) == 2" in now and "first line" in now
    assert (project / "tests" / "test_lost.py").read_text("utf-8").count(GONE) == 1
