"""Links between pages of the repository lead somewhere, and to headings that are there, as code hosts name them."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from docs.from_code.repository import ALWAYS, LINK, rewritten, without_code

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", *(ROOT / name for name in ALWAYS)]
OWN = re.compile(r"(?<=\]\()#([^)\s]+)(?=\))")


def slug(heading: str) -> str:
    """Return the anchor of a heading: lower case, without punctuation, spaces as hyphens."""
    bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", bare.lower()).strip().replace(" ", "-")


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page; of equal headings every one but the first has a number."""
    found: dict[str, int] = {}
    names = set()
    for line, prose in without_code(page.read_text("utf-8")):
        mark = re.match(r"#{1,6} (.*)", line) if prose else None
        if mark:
            name = slug(mark[1].strip())
            names.add(f"{name}-{found[name]}" if found.get(name) else name)
            found[name] = found.get(name, 0) + 1
    return names


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    wrong = []
    for line, prose in without_code(page.read_text("utf-8")):
        if not prose:
            continue
        for mark in LINK.finditer(line):
            target = (page.parent / mark[1]).resolve()
            there = target.exists()
            named = not there or target.suffix != ".md" or not mark[2] or mark[2][1:] in anchors(target)
            if not (there or is_made(target)) or not named:
                wrong.append(mark[0])
        wrong += [f"#{name}" for name in OWN.findall(line) if name not in anchors(page)]
    return wrong


def is_made(target: Path) -> bool:
    """Return whether a page is one that is made from the code; that it is, the building of the site checks."""
    places = ("commands", "plans", "attacks", "unlearners", "python", "fields")
    single = ("models", "data", "selectors", "rankings", "shipped-plans", "shipped-sweeps", "metrics")
    if not target.is_relative_to(ROOT / "docs" / "reference"):
        return False
    place = target.relative_to(ROOT / "docs" / "reference").with_suffix("").parts
    return place[0] in places or place in {(name,) for name in single}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `heading`: twice\n\n```\n# no heading\n```\n\n# A heading: twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md#a-heading-twice) [b](there.md#a-heading-twice-1) [c](there.md#no-heading) [d](none.md) [e](#f)\n"
        "```\n[g](none.md)\n```\n"
    )
    assert broken(page) == ["there.md#no-heading", "none.md", "#f"]


@pytest.mark.parametrize(
    ("source", "place", "written", "leads_to"),
    [
        ("docs/how-to/a.md", "how-to/a.md", "../../cluster.yaml", "../repository/cluster.yaml.md"),
        ("docs/how-to/a.md", "how-to/a.md", "../../README.md#x", "../repository/README.md#x"),
        ("docs/how-to/a.md", "how-to/a.md", "../reference/store.md#y", "../reference/store.md#y"),
        ("docs/index.md", "index.md", "images/auc.png", "images/auc.png"),
        ("README.md", "repository/README.md", "docs/how-to/ci.md", "../how-to/ci.md"),
        ("CONTRIBUTING.md", "repository/CONTRIBUTING.md", "CHANGELOG.md", "CHANGELOG.md"),
        ("docs/how-to/a.md", "how-to/a.md", "../../nowhere.yaml", "../../nowhere.yaml"),
    ],
)
def test_links_of_the_repository_become_those_of_the_site(source: str, place: str, written: str, leads_to: str) -> None:
    page = f"[one]({written}) and [two\nlines]({written})\n```\n[no]({written})\n```\n"
    expected = f"[one]({leads_to}) and [two\nlines]({leads_to})\n```\n[no]({written})\n```\n"
    assert rewritten(page, source, place) == expected
