"""The commands that README, docs, examples and cluster.yaml tell their readers, and those that our messages name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
COMMENTED = (
    *sorted(path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".yaml")),
    ROOT / "cluster.yaml",
)
SOURCES = sorted(
    path
    for package in ("orchestrator", "actors", "tune_spaces", "audits")
    for path in (ROOT / package).rglob("*")
    if path.suffix in (".py", ".j2", ".yaml")
)

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(orch(?:\s[^`]+)?)\1(?!`)")
BARE = re.compile(r"(?:^|[(\"])(orch [^`()\"]+)", re.MULTILINE)  # a line, a bracket or quotes that hold a command
FILE = re.compile(r"# ([\w-]+\.(?:py|yaml))\n")  # the first line of a block that is a file of the reader's
ALSO = re.compile(r"`(orch ls) \w+`((?: · `\w+`)+)")  # a list of what else the command takes
PROGRAMS = ("orch", "make", "python", "pytest", "mlflow")
LINE = re.compile(rf"(?:\$ )?((?:[A-Z_]+=\S+ )*(?:\S*/)?(?:{'|'.join(PROGRAMS)})(?: .*)?)$")
SEPARATORS = {"&&", "||", ";", "|"}


TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")


@dataclass(frozen=True)
class Command:
    """A command and where it stands; ``whole``: a reader can copy it, so nothing may be missing from it."""

    path: Path
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}: {shlex.join(self.words)}"


def split_line(line: str) -> Iterator[tuple[str, ...]]:
    """Yield the commands of a line of shell, without the values of variables before them and without comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    words: list[str] = []
    for token in [*lexer, ";"]:
        if token not in SEPARATORS:
            words.append(token)
            continue
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words:
            yield (Path(words[0]).name, *words[1:])
        words = []


def without_marks(text: str) -> str:
    """Return the comments of a file, without the marks before them."""
    return "\n".join(line.lstrip().lstrip("#").strip() for line in text.splitlines() if line.lstrip().startswith("#"))


def files_of(path: Path) -> dict[str, str]:
    """Return the files that a page has its reader write: name → text, which begins with the name in a comment."""
    blocks = (block for language, block in BLOCK.findall(path.read_text()) if language in ("python", "yaml"))
    return {found[1]: block for block in blocks if (found := FILE.match(block))}


def in_blocks(path: Path) -> Iterator[Command]:
    """Yield the commands in the blocks of a page."""
    for language, block in BLOCK.findall(path.read_text()):
        if language in ("", "sh", "bash", "console"):
            lines = filter(None, map(LINE.match, block.replace("\\\n", " ").splitlines()))
            yield from (Command(path, words, whole=True) for line in lines for words in split_line(line[1]))


def in_text(path: Path, text: str, pattern: re.Pattern[str]) -> Iterator[Command]:
    """Yield the commands that ``pattern`` finds in prose; those with a hole for a value are left out."""
    for match in pattern.finditer(text):
        line = " ".join(match[match.lastindex or 0].split())
        if not re.search(r"[{…]", line):
            yield from (Command(path, words, whole=False) for words in split_line(line.rstrip(".,:")))


def validated(command: Sequence[str]) -> list[str]:
    """Return the words by which a plan is checked that ``command`` (orch audit KIND PLAN …) carries out."""
    assert command[:2] == ["orch", "audit"], command
    return ["validate", command[3]]


def listed(path: Path) -> Iterator[Command]:
    """Yield the commands of lists such as `orch ls audits` · `attacks`."""
    for command, others in ALSO.findall(path.read_text()):
        yield from (Command(path, (*command.split(), word), whole=True) for word in re.findall(r"\w+", others))


def told() -> Iterator[Command]:
    """Yield every command of README, docs, examples and cluster.yaml."""
    for path in PAGES:
        yield from in_blocks(path)
        yield from in_text(path, BLOCK.sub("", path.read_text()), INLINE)
        yield from listed(path)
    for path in COMMENTED:
        text = path.read_text() if path.suffix == ".py" else without_marks(path.read_text())
        yield from in_text(path, text, INLINE)
        yield from in_text(path, text, BARE)


def named() -> Iterator[Command]:
    """Yield every command of the form `orch …` in sources: docstrings, messages and pages."""
    for path in SOURCES:
        text = path.read_text() if path.suffix != ".yaml" else without_marks(path.read_text())
        yield from in_text(path, text, INLINE)


def python_blocks() -> Iterator[tuple[Path, str]]:
    """Yield the pieces of Python on the pages."""
    for path in PAGES:
        yield from ((path, block) for language, block in BLOCK.findall(path.read_text()) if language == "python")


def named_tests() -> Iterator[tuple[Path, Path, str]]:
    """Yield where a page or a source names a test, the test's file and its function, if it names one."""
    for path in (*PAGES, *SOURCES):
        yield from ((path, ROOT / file, function) for file, function in TEST.findall(path.read_text()))
