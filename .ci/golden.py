"""Bring the sentences that tests hold up to date with what orch says now; the change is read in the diff.

    python .ci/golden.py                 tests that quote a sentence changed since main, and those that failed last
    python .ci/golden.py tests/docs ...  these tests

First the texts in tests/golden/texts are written anew, then each test that compares another sentence with what it heard
gets the present one in place of it, until nothing more can be renewed. Only strings are changed, and only where most of
their words are still said: a sentence that is gone stays a failure, and so does one with another number, or without its
"no", unless a string of orch was edited so. The exit status is 1 if tests fail at the end.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from imports import PACKAGES, ROOT
from quotes import WORD, renewed
from touched import changed, git, left_main

TEXTS = "tests/orchestrator/test_golden_texts.py"
ROUNDS = 8
"""A test shows one difference at a time."""
GRAM = 3
"""Words in a row by which a quotation is found."""
FAILED = ".pytest_cache/v/cache/lastfailed"


def strings(tree: ast.AST) -> set[str]:
    """Return the strings in a syntax tree, in pieces where values stand between, without escapes of patterns."""
    found = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value.replace("\\", "") for value in found if isinstance(value, str)}


def of_module(text: str) -> set[str]:
    """Return the strings in the source of a module."""
    return strings(ast.parse(text))


def of_template(text: str) -> set[str]:
    """Return the lines of a template."""
    return {*text.splitlines()}


def grams(pieces: Iterable[str]) -> set[tuple[str, ...]]:
    """Return all runs of three words in ``pieces``; of shorter ones all their words."""
    found = set()
    for piece in pieces:
        words = tuple(WORD.findall(piece))
        found |= {words[at : at + GRAM] for at in range(max(1, len(words) - GRAM + 1))}
    return found - {()}


def edits(root: Path) -> list[tuple[str, str]]:
    """Return the strings of modules, and lines of templates, that were otherwise on main, each with what is there now.

    It is "" where nothing is like it.
    """
    base, found = left_main(root), []
    for name in changed(root):
        if name.partition("/")[0] in PACKAGES:
            was = "\n".join(git(root, "show", f"{base}:{name}"))
            now = (root / name).read_text("utf-8") if (root / name).exists() else ""
            of = of_module if name.endswith(".py") else of_template
            old, new = sorted(of(was) - of(now)), sorted(of(now) - of(was))
            found += [(each, next(iter(get_close_matches(each, new, 1, 0.3)), "")) for each in old]
    return found


def tests_that_quote(root: Path, pairs: list[tuple[str, str]]) -> list[str]:
    """Return the tests that hold words which are gone, and those that failed last."""
    wanted = grams(was for was, _ in pairs) - grams(now for _, now in pairs)
    found = failed_last(root)
    for file in (root / "tests").rglob("*.py"):
        for function in functions_that_quote(file, wanted) if wanted else ():
            if not file.name.startswith("test_"):
                found |= importers(root, file)
            elif function.startswith("test_"):
                found.add(f"{file.relative_to(root)}::{function}")
            else:
                found.add(str(file.relative_to(root)))
    whole = {name for name in found if "::" not in name} | {TEXTS}
    return sorted(found - {TEXTS} - {name for name in found - whole if name.partition("::")[0] in whole})


def failed_last(root: Path) -> set[str]:
    """Return the tests of which the last run of pytest knows that they fail, all cases of each."""
    failed = json.loads((root / FAILED).read_text()) if (root / FAILED).exists() else {}
    return {name for test in failed if (root / (name := test.partition("[")[0]).partition("::")[0]).exists()}


def functions_that_quote(file: Path, wanted: set[tuple[str, ...]]) -> Iterator[str]:
    """Yield the functions at the top of a file that hold ``wanted`` words; "" for what else does."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if wanted & grams(strings(node)):
            yield node.name if isinstance(node, ast.FunctionDef) else ""


def importers(root: Path, helper: Path) -> set[str]:
    """Return the test files that import a module of tests directly."""
    name = ".".join(helper.relative_to(root).with_suffix("").parts)
    return {str(file.relative_to(root)) for file in (root / "tests").rglob("test_*.py") if name in file.read_text()}


def run(root: Path, tests: Iterable[str], *options: str) -> tuple[bool, list[dict[str, str]]]:
    """Run ``tests``; return whether all passed, and every difference of sentences that was found."""
    with tempfile.TemporaryDirectory() as folder:
        heard = Path(folder) / "heard"
        heard.touch()
        words = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=line", "-p", "hearing", *options, *tests]
        paths = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(words, cwd=root, env={**os.environ, "ORCH_HEARD": str(heard), "PYTHONPATH": paths})
        return done.returncode in (0, 5), [json.loads(line) for line in heard.read_text("utf-8").splitlines()]


def renew(root: Path, found: Iterable[dict[str, str]], pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Put what is said now into the tests; yield the files that changed."""
    for difference in found:
        file = renewed(root, pairs, **difference)
        if file:
            yield str(file.relative_to(root))


def main(words: list[str], root: Path = ROOT) -> int:
    """Renew; return the exit status."""
    fine = True
    if not words:
        fine, _ = run(root, [TEXTS])
    touched, pairs = set[str](), edits(root)
    tests = words or tests_that_quote(root, pairs)
    passed = True
    for turn in range(ROUNDS) if tests else ():
        many = ["-n", "3"] if len(tests) > 3 and not turn else []
        passed, found = run(root, tests, *many)
        if passed:
            break
        files = {*renew(root, found, pairs)}
        tests = sorted(failed_last(root))
        if not (files and tests):
            break
        touched |= files
        subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *sorted(files)], cwd=root, check=True)
    for file in sorted(touched):
        print(f"renewed: {file}")
    if not (fine and passed):
        print("these tests want a person: see above", file=sys.stderr)
    return 0 if fine and passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
