"""The sentences in which a finished run is told: of its page, its terminal and its summary for CI, without numbers."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

from rich.console import Console

from orchestrator.cli.finished import page_of
from orchestrator.cli.gating import write_for_ci
from orchestrator.report.result import read_result

NUMBER = re.compile(r"[-−+]?\.?\d+(?:[.,:/–×-]\d+)*")
DIGEST = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,}\b")
AMOUNT = re.compile(r"# (?:ms|s|min|h|days?|bytes|[kMGT]i?B)\b")
UNSEEN = {"pre", "script", "style", "svg"}
DATE = re.compile(r"# [A-Z][a-z]+ #, # UTC")
INLINE = {"a", "abbr", "b", "code", "em", "i", "kbd", "small", "span", "strong", "sub", "sup"}


class Seen(HTMLParser):
    """What a reader of a page sees, a paragraph a line; figures and plans are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.hidden = "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in UNSEEN
        self.text += "" if tag in INLINE else "\n"

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in UNSEEN
        self.text += "\n" if tag not in INLINE else " " if tag == "b" else ""

    def handle_data(self, data: str) -> None:
        self.text += "" if self.hidden else re.sub(r"\s+", " ", data)


def told(run: Path, work: Path) -> str:
    """Return what the run in folder ``run`` says, under a heading for each medium; ``work``: an empty folder."""
    document = read_result(run)
    page, seen, shown, summary = page_of(document), Seen(), io.StringIO(), work / "summary.md"
    seen.feed((run / "report.html").read_text("utf-8"))
    console = Console(file=shown, width=10_000, color_system=None)
    for table in page.tables(document):
        console.print(table)
    write_for_ci(document, None, None, summary)
    parts = {
        "page": seen.text,
        "terminal": "\n".join([shown.getvalue(), *page.closing_lines(document)]),
        "summary": summary.read_text("utf-8"),
    }
    return "\n".join(f"== {name}\n{sentences(text.replace(str(run.parent), '…'))}" for name, text in parts.items())


def sentences(text: str) -> str:
    """Return each line that has words once, with # for what is a number, a digest, a time, a date or a size."""
    masked = DATE.sub("#", AMOUNT.sub("#", NUMBER.sub("#", DIGEST.sub("#", text))))
    lines = (" ".join(line.split()) for line in masked.splitlines())
    return "".join(f"{line}\n" for line in dict.fromkeys(lines) if re.search("[A-Za-z]{2}", line))
