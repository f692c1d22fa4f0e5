"""Names that try to be more than names, and readers that say what became of them in each medium."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

NAMES = (
    "## heading\n\n- list",
    "[link](http://evil.example/x)",
    "![image](http://evil.example/x.png)",
    '"><img src=x onerror=alert(1)><script>alert(1)</script>',
    "@team #123 GH-7 https://evil.example www.evil.example a@evil.example",
    "a | b `code` *bold* _em_ ~~s~~ \\ &lt;b&gt;",
    "\x1b]0;title\x07\x1b[31mred\x1b[2J\r\b\x9b31m",
    '=HYPERLINK("http://evil.example","click")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    " \t=1+1",
    "'quoted",
    "$\\frac{$",
    "a$b$c_{",
    "\u202egnp.exe\u2066\u200b\u200d\ufeff\u2028\u2029x\u00ad",
    "nul\x00c1\x85\x9fdel\x7f",
    "../../etc/passwd",
    "--> ]]> <!-- <![CDATA[",
    "[bold red]:bomb:[/]",
    "1. first",
    "x" * 100_000,
    "line\n" * 3000,
    "\ufffe\uffff\U000e0041\u3164",
    "{{ 7 * 7 }}{% raw %}",
    '~bug ~"two words" %v1 %"next" %3 &12 $34',
)
HALVES = ("half \ud800", "\udcff\udc80.csv")
TOKENS = (
    *(name for name in NAMES if len(name) < 1000),
    "a",
    "=",
    "@",
    "$",
    "<",
    "`",
    "|",
    "\n",
    "\x1b",
    "\u202e",
    "1",
    "-",
    "_",
    "#",
)

CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
VIRAMAS = "".join(each for each in map(chr, range(0x110000)) if unicodedata.combining(each) == 9)
FORMULA = "=+-@\t\r\n＝＋－＠"
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|nan)")
LIVE = re.compile(r"@\w|#\d|[~%][\w\"]|[&$]\d|GH-\d|(https?|ftp|mailto|xmpp):|www\.", re.IGNORECASE)
LINKS = ("href", "src", "{http://www.w3.org/1999/xlink}href")


def hostile(*, halves: bool = False) -> st.SearchStrategy[str]:
    """Return names that are put together from pieces that mean something somewhere, and from any characters."""
    characters = st.characters(exclude_categories=() if halves else ("Cs",))
    pieces = st.sampled_from((*TOKENS, *HALVES) if halves else TOKENS)
    return st.lists(pieces | characters, min_size=1, max_size=6).map("".join)


def steering(text: str) -> set[str]:
    """Return the characters of a text that a terminal obeys, or that nobody sees; a line may end.

    Joiners count only where neither Arabic letters nor a virama (Indic scripts) give them a meaning.
    """
    text = re.sub(f"(?<=[{VIRAMAS}])[\u200c\u200d]|(?<=[\u0620-\u077f])\u200c(?=[\u0620-\u077f])", "", text)
    return {each for each in text if unicodedata.category(each) in CONTROLS and each != "\n"}


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, and what they link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[tuple[str, frozenset[str]]] = set()
        self.links: list[str] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, frozenset(name for name, _ in attrs)))
        self.links += [str(value) for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def leads_away(link: str) -> bool:
    """Say whether a link leads out of a page and of its folder."""
    return not link.startswith(("#", "data:image/png;base64,", "data:text/csv;base64,", "figures/"))


def inline(text: str) -> Iterator[Token]:
    """Yield what Markdown makes of a text, tables and strikethrough too."""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def live_markdown(text: str, links: int = 0) -> list[str]:
    """Return what is live in Markdown: links but for ``links`` of our own, pictures, HTML, mentions."""
    tokens = list(inline(text))
    odd = {"image", "html_block", "code_inline", "code_block", "fence", "s_open", "em_open", "blockquote_open",
           "ordered_list_open", "hr"}  # fmt: skip
    found = [each.type for each in tokens if each.type in odd]
    found += [each.content for each in tokens if each.type == "html_inline" and each.content != "<!-- -->"]
    found += ["link"] * (sum(each.type == "link_open" for each in tokens) - links)
    found += [each.content for each in tokens if each.type == "text" and LIVE.search(each.content)]
    return found


def read_markdown(text: str) -> str:
    """Return the words that a reader of Markdown sees."""
    return "".join(each.content for each in inline(text) if each.type in ("text", "text_special"))


def formulas(text: str) -> list[str]:
    """Return the cells of a CSV file that a spreadsheet may run."""
    cells = [cell for line in csv.reader(io.StringIO(text, newline="")) for cell in line]
    return [each for each in cells if each.startswith(tuple(FORMULA)) and not NUMBER.fullmatch(each)]


def cells(text: str) -> set[str]:
    """Return the cells of a CSV file without the guard before text."""
    return {cell.removeprefix("'") for line in csv.reader(io.StringIO(text, newline="")) for cell in line}


def live_svg(root: ET.Element) -> list[str]:
    """Return what runs, or leads away, in an SVG."""
    odd = []
    for element in root.iter():
        kind = str(element.tag).rpartition("}")[2].lower()
        odd += [kind] * (kind in ("script", "foreignobject", "a", "iframe", "animate", "set", "text"))
        odd += [name for name in element.attrib if name.lower().startswith("on")]
        odd += [value[:80] for name, value in element.attrib.items() if name in LINKS and leads_away(value)]
        odd += [value for value in element.attrib.values() if "url(" in value and "url(#" not in value]
        if kind == "style":  # a browser reads the text before, between and behind what stands in it
            odd += [text for text in element.itertext() if re.search(r"[@\\]|url|position|display|//", text)]
    return odd


def read_svgs(folder: Path) -> list[ET.Element]:
    """Return the figures of a run, each a whole XML file."""
    return [ET.fromstring(file.read_bytes()) for file in sorted(folder.glob("*.svg"))]
