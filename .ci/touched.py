"""Print the test files nearest to what has changed since the last commit of main, as many as run in about a minute.

``make quick`` runs them. Nearest are tests that were changed themselves, then those in the folder of a changed module,
then those that import it, directly or over other modules. What a file takes is what the last run wrote down.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import grimp
from imports import PACKAGES, ROOT

SECONDS = 90.0
"""Seconds of the CPU that the tests may take together; two processes share them."""
UNKNOWN = 5.0
"""Seconds of a file that never ran here."""
TAKEN = ".pytest_cache/v/orch/seconds"


def changed(root: Path) -> list[str]:
    """Return the files that differ from the commit in which this branch left main, new ones too."""
    return git(root, "diff", "--name-only", left_main(root)) + git(root, "ls-files", "--others", "--exclude-standard")


def left_main(root: Path) -> str:
    """Return the commit in which this branch left main."""
    return (git(root, "merge-base", "HEAD", "origin/main") or git(root, "merge-base", "HEAD", "main") or ["HEAD"])[0]


def git(root: Path, *words: str) -> list[str]:
    """Return the lines that a command of git prints; none if it fails."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout.split("\n")[:-1]


def tests_by_distance(files: Iterable[str], root: Path) -> Iterator[list[str]]:
    """Yield the test files at each distance from changed ``files``, the nearest first; each file once."""
    sys.path.insert(0, str(root))
    graph = grimp.build_graph(*PACKAGES, "tests", cache_dir=None)
    modules = {name for file in files if (name := module_of(file)) in graph.modules}
    found = {file for file in files if is_test(file) and (root / file).exists()}
    yield sorted(found)
    beside = {str(file.relative_to(root)) for name in files for file in folder_of(name, root).glob("test_*.py")}
    yield sorted(beside - found)
    found |= beside
    seen = front = modules
    while front:
        front = {by for name in front for by in graph.find_modules_that_directly_import(name)} - seen
        seen = seen | front
        there = {file for name in front if is_test(file := f"{name.replace('.', '/')}.py")} - found
        yield sorted(there)
        found |= there


def module_of(file: str) -> str:
    """Return the name of the module in a file."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def is_test(file: str) -> bool:
    """Say whether a file holds tests."""
    return file.startswith("tests/") and Path(file).name.startswith("test_") and file.endswith(".py")


def folder_of(file: str, root: Path) -> Path:
    """Return the folder in which the tests of a file stand: that of its own folder, or else of the next above it."""
    parts = Path(file).parent.parts
    wanted = root.joinpath(*parts) if parts[:1] == ("tests",) else root.joinpath("tests", *parts)
    return next(folder for folder in (wanted, *wanted.parents) if folder.is_dir())


def seconds_by_file(root: Path) -> Counter[str]:
    """Return the CPU seconds of each test file as the last runs found them."""
    seconds = Counter[str]()
    if (root / TAKEN).exists():
        for test, (_, cpu) in json.loads((root / TAKEN).read_text()).items():
            seconds[test.partition("::")[0]] += cpu
    return seconds


def chosen(root: Path) -> list[str]:
    """Return the nearest test files that fit into the time, and say on the error stream what was left out."""
    seconds, room, kept, left = seconds_by_file(root), SECONDS, list[str](), 0
    for near in tests_by_distance(changed(root), root):
        for file in sorted(near, key=lambda file: seconds.get(file, UNKNOWN)):
            if not kept or seconds.get(file, UNKNOWN) <= room:
                room -= seconds.get(file, UNKNOWN)
                kept.append(file)
            else:
                left += 1
    print(f"{len(kept)} test files are nearest to the change; {left} that it reaches are left out", file=sys.stderr)
    return kept


if __name__ == "__main__":
    print("\n".join(chosen(ROOT)))
