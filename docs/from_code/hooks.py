"""Hooks of MkDocs (``mkdocs.yml``) that build the site: pages made from the code, and links between files."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from markdown.blockprocessors import ListIndentProcessor, OListProcessor, UListProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # MkDocs loads this file by its name

from docs.from_code import commands, components, metrics, plans, python, repository, results

SOURCES = (commands, plans, components, metrics, results, python)
EMPTY_HEAD = re.compile(r"<thead>\s*<tr>\s*(?:<th[^>]*></th>\s*)+</tr>\s*</thead>\s*")


class ListsAsOnCodeHosts(Extension):  # type: ignore[misc]  # Markdown has no annotations
    """Lists inside lists may be indented by two or three spaces, as on code hosts, and not by four alone."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Read lists with a narrower tab."""
        md.tab_length = 2
        for name, kind, priority in (
            ("indent", ListIndentProcessor, 90),
            ("olist", OListProcessor, 40),
            ("ulist", UListProcessor, 30),
        ):
            md.parser.blockprocessors.register(kind(md.parser), name, priority)


@functools.cache
def made() -> dict[str, str]:
    """Return all pages that are made: place in docs → text."""
    from_code = {place: text for source in SOURCES for place, text in source.pages().items()}
    return from_code | repository.published(repository.written() | from_code)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the navigation with the pages of each folder that it names."""
    config.nav = [expanded(item) for item in config.nav or []]
    config.markdown_extensions.append(ListsAsOnCodeHosts())
    return config


def expanded(item: Any) -> Any:
    """Return an item of the navigation; in the place of a folder ("reference/attacks/") its pages."""
    if isinstance(item, Mapping):
        return {title: expanded(inside) for title, inside in item.items()}
    if isinstance(item, list):
        return [expanded(one) for one in item]
    return folder(item) if isinstance(item, str) and item.endswith("/") else item


def folder(place: str) -> list[Any]:
    """Return the pages of a folder, its index first, and the folders in it as sections."""
    known = [*made(), *repository.written()]
    inside = [name.removeprefix(place) for name in known if name.startswith(place)]
    pages = sorted(
        (f"{place}{name}" for name in inside if "/" not in name), key=lambda page: page != f"{place}index.md"
    )
    below = list(dict.fromkeys(name.partition("/")[0] for name in inside if "/" in name))
    return [*pages, *({name: named(f"{place}{name}/")} for name in below)]


def named(place: str) -> list[Any]:
    """Return the pages of a folder within another one, called by their files' names."""
    return [{Path(page).stem: page} if isinstance(page, str) else page for page in folder(place)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for place, text in made().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files of the repository lead to their pages."""
    place = page.file.src_uri
    return markdown if place in made() else repository.rewritten(markdown, f"docs/{place}", place)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out the heads of tables that say nothing; Markdown has no tables without one."""
    return EMPTY_HEAD.sub("", html)
