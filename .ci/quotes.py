"""Sentences quoted in Python sources: what is said now in place of an old one, and how it is put into the source."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

WORD = re.compile(r"\w+")
PIECE = re.compile(r"\w+|\W")
KEPT = 0.5
"""Share of the words of a sentence that must still be said."""
SPECIAL = r"\.^$*+?{}[]|()"
FACT = re.compile(
    r"\.?\d+(?:[.,]\d+)*|\b(?:no|not|nor|never|none|nothing|nobody|cannot|without)\b|n[’']t\b", re.IGNORECASE
)
"""Numbers and negations: what says something else if it changes, whatever the other words are."""
BREAK = re.compile(r"[.!?:;]\s|\n|<[^>]*>")
WIDE = 80
"""Characters of a piece of a string that is written over several lines."""

Edits = Sequence[tuple[str, str]]
NONE: Edits = ()


def renewed(root: Path, edits: Edits, test: str, how: str, was: str, now: str) -> Path | None:
    """Put what ``now`` says in place of ``was`` where ``test`` holds it; return the changed file, None if none was.

    ``edits``: strings of orch as they were and as they are: where one of them held ``was``, it says what is there now.
    Nothing else puts another number, or takes a "no" away.
    ``how``: see hearing.py; of "either" the test may hold one or the other.
    """
    ways = [(was, now), (now, was)] if how == "either" else [(was, now)]
    for held, said in ways:
        new = {"part": closest, "pattern": new_pattern}.get(how, if_alike)(held, said, edits)
        if new is None or new == held or (facts(new) != facts(held) and new != edited(held, said, edits)):
            continue
        if file := put_in(root, test, held, new):
            return file
    return None


def facts(text: str) -> Counter[str]:
    """Return the numbers and negations in a text."""
    return Counter(found.lower() for found in FACT.findall(text))


def put_in(root: Path, test: str, was: str, new: str) -> Path | None:
    """Put ``new`` in place of ``was`` in the source of ``test``, or in the first helper that holds it."""
    file, function = root / test.partition("::")[0], test.split("::")[-1].partition("[")[0]
    for place in (file, *helpers(root, file)):
        text = place.read_text("utf-8")
        put = in_source(text, was, new, function if place == file else "")
        if put is not None:
            place.write_text(put, "utf-8")
            return place
    return None


def helpers(root: Path, test: Path) -> list[Path]:
    """Return the files of tests that ``test`` imports, and then all that hold no tests themselves."""
    text = test.read_text("utf-8")
    others = sorted({*(root / "tests").rglob("*.py")} - {test})
    imported = [each for each in others if ".".join(each.relative_to(root).with_suffix("").parts) in text]
    return imported + [each for each in others if each not in imported and not each.name.startswith("test_")]


def edited(was: str, now: str, edits: Edits) -> str | None:
    """Return what an edit made of ``was``, if ``now`` says it."""
    for old, new in edits:
        if (start := old.find(was)) < 0:
            continue
        one, other = PIECE.findall(old), PIECE.findall(new)
        first, last = (len(PIECE.findall(old[:end])) for end in (start, start + len(was)))
        kept = [
            piece
            for tag, begin, end, into, until in SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
            for piece in part(tag, begin, end, other[into:until], first, last)
        ]
        if (said := "".join(kept)) and said in now:
            return said
    return None


def part(tag: str, begin: int, end: int, pieces: list[str], first: int, last: int) -> list[str]:
    """Return which pieces of a change of one sentence stand in place of those from ``first`` to ``last``."""
    if tag == "equal":
        return pieces[max(first - begin, 0) : max(last - begin, 0)]
    return pieces if (first < end and begin < last) or first < begin == end < last else []


def if_alike(was: str, now: str, edits: Edits = NONE) -> str | None:
    """Return ``now`` if it is a sentence like ``was``."""
    return now if kept(was, now) >= KEPT else None


def kept(was: str, now: str) -> float:
    """Return which share of the words of ``was`` stand in ``now`` in their order."""
    words = WORD.findall(was)
    return same(words, WORD.findall(now)) / len(words) if words else 0.0


def same(one: list[str], other: list[str]) -> int:
    """Return how many words two sentences share in their order."""
    return sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())


def closest(was: str, text: str, edits: Edits = NONE) -> str | None:
    """Return the part of ``text`` that says ``was`` in other words; None if too few words of it are there."""
    if (new := edited(was, text, edits)) is not None:
        return new
    words, tokens = WORD.findall(was), [*WORD.finditer(text)]
    if not words:
        return None
    best, found = (KEPT * len(words), 0, 2, 0), None
    for first in starts(words, [token.group() for token in tokens]):
        for size in range(max(1, len(words) // 2), 2 * len(words) + 2):
            window = tokens[first : first + size]
            if len(window) < size:
                break
            part = [token.group() for token in window]
            ends = (part[0] == words[0]) + (part[-1] == words[-1])
            whole = text[window[0].start() : window[-1].end()]
            broken = len(BREAK.findall(whole)) - len(BREAK.findall(was))
            rank = (same(words, part), -max(0, broken), ends, -abs(size - len(words)))
            if rank > best:
                best, found = rank, whole
    if found is None:
        return None
    of = [*WORD.finditer(was)]
    whole = was[: of[0].start()] + found + was[of[-1].end() :]
    return whole if whole in text else found


def starts(words: list[str], tokens: list[str], most: int = 40) -> list[int]:
    """Return where in ``tokens`` the sentence may begin: where most of ``words`` are near."""
    wanted, near, size = Counter(words), Counter[int](), len(words)
    places = [at for at, token in enumerate(tokens) if token in wanted]
    for at in places:
        for first in range(max(0, at - size + 1), at + 1):
            near[first] += 1
    return [first for first, _ in near.most_common(most)]


def new_pattern(was: str, now: str, edits: Edits = NONE) -> str | None:
    """Return a pattern that finds in ``now`` what ``was`` found; None for one of more than words and ``.*`` between."""
    pieces = was.split(".*")
    if any(re.search(r"(?<!\\)[\^$*+?{}\[\]|()]", piece) or re.search(r"\\[A-Za-z0-9]", piece) for piece in pieces):
        return None
    rest, found = now, list[str]()
    for piece in pieces:
        plain = re.sub(r"\\(.)", r"\1", piece)
        if re.search(piece, rest):
            new = piece
            rest = rest[re.search(piece, rest).end() :]  # type: ignore[union-attr]  # it was found just now
        else:
            said = closest(plain, rest, edits)
            if said is None:
                return None
            new = "".join(f"\\{letter}" if letter in SPECIAL else letter for letter in said)
            rest = rest[rest.index(said) + len(said) :]
        found.append(new)
    return ".*".join(found)


def in_source(text: str, was: str, new: str, function: str) -> str | None:
    """Return a source with ``new`` in the place of the string ``was``; None if it does not hold it.

    Where the function named ``function`` holds it, only there.
    """
    tree = ast.parse(text)
    inside = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    for scope in (*inside, tree):
        edits = [*constants(text, scope, was, new)] or [*templates(text, scope, was, new)]
        if edits:
            for start, end, put in sorted(edits, reverse=True):
                text = text[:start] + put + text[end:]
            return text
    return None


def span(text: str, node: ast.expr) -> tuple[int, int]:
    """Return where an expression stands, in characters."""
    lines = text.splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    assert node.end_lineno is not None and node.end_col_offset is not None
    return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)


def constants(text: str, scope: ast.AST, was: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Yield the changes that put ``new`` where a whole string is ``was``."""
    pieces = {id(part) for node in ast.walk(scope) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(scope):
        if isinstance(node, ast.Constant) and node.value == was and id(node) not in pieces:
            yield (*span(text, node), literal(new))


def literal(value: str) -> str:
    """Return the source of a string, over several lines if it is long."""
    words = re.findall(r"\S*\s*", value)
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > WIDE:
            lines.append("")
        lines[-1] += word
    written = [raw(line) for line in lines]
    return written[0] if len(written) == 1 else f"({' '.join(written)})"


def raw(line: str) -> str:
    """Return the source of one piece of a string: a raw one where that saves escapes."""
    return f'r"{line}"' if "\\" in line and '"' not in line and line.isprintable() else repr(line)


def templates(text: str, scope: ast.AST, was: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Yield the changes that put ``new`` where a string with values in it made ``was``: the values stay."""
    for node in ast.walk(scope):
        if not isinstance(node, ast.JoinedStr):
            continue
        fixed = [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
        found = re.fullmatch("".join("(.*?)" if part is None else re.escape(part) for part in fixed), was, re.DOTALL)
        if not found or not any(fixed):
            continue
        values = [*found.groups()]
        here = re.fullmatch("(.*?)".join(["", *(f"({re.escape(value)})" for value in values), ""]), new, re.DOTALL)
        start, end = span(text, node)
        put = text[start:end]
        if here:
            between = [group for at, group in enumerate(here.groups()) if at % 2 == 0]
            for old, say in zip(around(fixed), between, strict=True):
                if old != say:
                    put = put.replace(old, say, 1) if old and put.count(old) == 1 else ""
            if put and put != text[start:end]:
                yield start, end, put


def around(fixed: list[str | None]) -> list[str]:
    """Return the words before, between and behind the values of a string."""
    found = [""]
    for part in fixed:
        if part is None:
            found.append("")
        else:
            found[-1] += part
    return found
