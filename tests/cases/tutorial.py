"""docs/tutorial.md as its reader follows it: one script of its files and commands, and what it says they print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.docs.commands import BLOCK, FILE, ROOT

PAGE = ROOT / "docs" / "tutorial.md"
TOLERANCE = 0.05
"""How far an AUC or an accuracy may lie from what the page shows: another torch rounds training differently."""
NUMBER = re.compile(r"(?<![\w.])[+−-]?\d*\.\d+")
MARK, END = "=== step", "END_OF_FILE"


@dataclass(frozen=True)
class Step:
    """One block of commands, and the lines of what it prints that the page shows."""

    commands: str
    shown: tuple[str, ...]


def blocks() -> list[tuple[str, str]]:
    """Return the page's blocks: language and text."""
    return BLOCK.findall(PAGE.read_text())


def steps() -> list[Step]:
    """Return the blocks of commands in their order; files that stand before one are written by it."""
    found: list[Step] = []
    files = ""
    for language, text in blocks():
        if language == "text":
            assert not files and not found[-1].shown, f"nothing printed this: {text}"
            found[-1] = Step(found[-1].commands, tuple(text.splitlines()))
        elif language == "bash":
            found.append(Step(files + text, ()))
            files = ""
        else:
            name = FILE.match(text)
            assert name, f"this block is no file: {text}"
            files += f"cat > {name[1]} <<'{END}'\n{text}{END}\n"
    assert not files
    return found


def script(replaced: Mapping[str, str]) -> str:
    """Return the whole page as one script of bash, which stops where a command fails whose exit code is not printed.

    ``replaced``: what a reader puts in the place of some words.
    """
    lines = ["set -o pipefail"]
    for number, step in enumerate(steps()):
        text = step.commands
        for word, value in replaced.items():
            text = text.replace(word, value)
        lines += [f"echo '{MARK} {number}'", "set +e" if "$?" in text else "set -e", text]
    return "\n".join(lines)


def follow(place: Path, replaced: Mapping[str, str], environment: Mapping[str, str]) -> list[list[str]]:
    """Carry out the page in ``place`` and return the lines that each step printed."""
    done = subprocess.run(
        ["bash", "-c", script(replaced)], cwd=place, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = re.split(rf"^{MARK} \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    return [part.splitlines() for part in parts]


def is_shown(line: str, printed: str) -> bool:
    """Say whether ``printed`` is what the page shows as ``line``: the same words, decimals within the tolerance."""
    pattern = "".join(
        r"\s+" if part.isspace() else ".*" if part == "…" else rf"({NUMBER.pattern})" if is_number else re.escape(part)
        for part, is_number in pieces(line.strip())
    )
    found = re.fullmatch(pattern, printed.strip())
    if not found:
        return False
    pairs = zip(NUMBER.findall(line), found.groups(), strict=True)
    return all(abs(value(told) - value(seen)) <= TOLERANCE for told, seen in pairs)


def pieces(line: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a line (spaces, holes, numbers, words) and whether each is a number."""
    for part in re.findall(rf"\s+|…|{NUMBER.pattern}|(?:(?!{NUMBER.pattern})[^\s…])+", line):
        yield part, bool(NUMBER.fullmatch(part))


def value(text: str) -> float:
    """Return the number that a report or a page writes as ``text``."""
    return float(text.replace("−", "-"))


def missing(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return the lines of the page that were not printed, in their order."""
    rest = iter(printed)
    return [line for line in shown if not any(is_shown(line, each) for each in rest)]
