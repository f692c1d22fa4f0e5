"""Files of the repository that pages link to: pages of the site, too, with links that lead to them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FOLDER = "repository"
"""Where such files lie in the site."""
ALWAYS = ("CONTRIBUTING.md", "CHANGELOG.md")
"""Files that the navigation names."""
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^\s*(```+|~~~+)")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}


def without_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a page, and whether each stands outside of fenced code."""
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            yield line, False
        else:
            yield line, not fence


def links(text: str) -> list[str]:
    """Return the relative links of a page, without anchors."""
    return [unquote(mark[1]) for line, prose in without_code(text) if prose for mark in LINK.finditer(line)]


def place_of(target: str) -> str | None:
    """Return where the site has a file of the repository; None for a file that it does not publish."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if not (ROOT / target).is_file():
        return None
    return f"{FOLDER}/{target}" if target.endswith(".md") else f"{FOLDER}/{target}.md"


def rewritten(text: str, source: str, place: str) -> str:
    """Return a page with links that hold in the site.

    ``source``: the page's place in the repository; ``place``: where the site has it. Links to files that the site does
    not have stay as they are, and MkDocs complains.
    """

    def lead(mark: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), unquote(mark[1])))
        found = place_of(target)
        if found is None:
            return mark[0]
        return posixpath.relpath(found, posixpath.dirname(place) or ".") + (mark[2] or "")

    return "".join(LINK.sub(lead, line) if prose else line for line, prose in without_code(text))


def published(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the pages of all files outside of docs that ``pages`` (place in docs → text) and those files link to."""
    found: dict[str, str] = {}
    waiting = [*ALWAYS, *outside(((f"docs/{place}", text) for place, text in pages.items()))]
    while waiting:
        name = waiting.pop()
        place = place_of(name)
        if place is None or place in found:
            continue
        text = (ROOT / name).read_text("utf-8")
        if name.endswith(".md"):
            found[place] = rewritten(text, name, place)
            waiting += outside([(name, text)])
        else:
            found[place] = file_page(name, text)
    return found


def outside(pages: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the files outside of docs that pages (place in the repository, text) link to."""
    for source, text in pages:
        for link in links(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
            if not target.startswith(("docs/", "..")):
                yield target


def file_page(name: str, text: str) -> str:
    """Return the page of a file that is no page: its name, and what it holds."""
    language = LANGUAGES.get(Path(name).suffix, "text")
    return f"# {name}\n\n`````{language}\n{text.rstrip()}\n`````\n"


def written(read: Callable[[Path], str] = lambda file: file.read_text("utf-8")) -> dict[str, str]:
    """Return the pages in docs that people have written: place in docs → text; "a" comes before "a-b"."""
    files = sorted(DOCS.rglob("*.md"), key=lambda file: file.with_suffix(""))
    return {file.relative_to(DOCS).as_posix(): read(file) for file in files}
