"""Text of others in each medium: what stands for a name on a terminal, in Markdown, HTML, XML, CSV, a figure, a file.

Plans, files of scores and results may be anybody's, and so may every name in them. A writer passes each text through
the function of its medium, which leaves ordinary names as they are. JSON needs none: ``json.dumps`` writes ASCII.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterable
from html import escape
from xml.etree import ElementTree as ET

from audits.errors import BadInput

INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that are drawn as nothing, which Python counts as printable."""
LONGEST, LONGEST_LABEL, MOST_LABEL_LINES, LONGEST_FILE_NAME = 6000, 160, 4, 150
"""Characters of a line for people and of a line of a figure's label, lines of a label, bytes of a file's name."""

JOINERS = "\u200c\u200d"
"""What Persian and the scripts of India write between letters that shall, or shall not, be joined."""
TAKEN = re.compile(r"-[0-9a-f]{16}\Z")
"""The end of a file's name that says which text it stands for."""

SPACE = re.compile(r"[^\S\xa0\u202f]+")
"""What Markdown may take for the end of a word or a line; blanks that hold words together are kept."""
MARKUP = re.compile(
    r"[\\|`~$]|<(?=[A-Za-z/!?])|&(?=[#\w])"
    r"|\[(?![-−+.,\d\s%]*\](?![(\[:]))"  # not that of an interval
    r"|\*(?=\S)|(?<![\d\]%])\*"  # not a star behind a number
    r"|_(?![^\W_])|(?<![^\W_])_"  # not within a word
)
BLOCK = re.compile(r"\A(?=#{1,6}(?:\s|$)|>|[-+](?:\s|$)|[-=]+$)")
NUMBERED = re.compile(r"\A(\d{1,9})(?=[.)](?:\s|$))")
LINKED = re.compile(
    r"@(?=\w)|[#!&$](?=\d)|[~%](?=\\?[\w\"])|GH-(?=\d)|(?:https?|ftp|mailto|xmpp)(?=:)|www(?=[.])", re.IGNORECASE
)
"""Where GitHub and GitLab link by themselves: mentions, issues, labels, milestones, addresses.

A comment in between keeps them apart.
"""

FORMULA = tuple("=+-@\t\r\n＝＋－＠")
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DRAWN = frozenset(
    [
        "svg",
        "g",
        "defs",
        "path",
        "use",
        "rect",
        "circle",
        "ellipse",
        "line",
        "polyline",
        "polygon",
        "clipPath",
        "image",
        "style",
    ]
)
"""Elements of our figures. Text is drawn as paths."""
STYLE = re.compile(r"\*\{(?:stroke-line(?:join|cap): [a-z]+[; ]*)*\}")
"""The looks that Matplotlib gives to all elements; those of a ``<style>`` hold for the whole page."""
LOCAL = re.compile(r"#[\w.-]+|data:image/png;base64,[A-Za-z0-9+/=\s]*")
ATTRIBUTES = re.compile(r"clip-path|c[xy]|d|height|id|points|r[xy]?|style|transform|version|viewBox|width|[xy][12]?")
"""Of those elements, beside links. Programs of a page take others, such as classes, for words of their own."""
LOOKS = re.compile(
    r"clip-(?:path|rule)|fill(?:-opacity|-rule)?|opacity"
    r"|stroke(?:-(?:dasharray|dashoffset|linecap|linejoin|miterlimit|opacity|width))?"
)
"""What a ``style`` may say of an element."""
PLAIN = re.compile(r"(?:url\(#[\w.-]+\)|(?!(?:url|src|image|image-set)\()[\w\s.,#%+()-])*", re.IGNORECASE)
"""A value that loads nothing: numbers, words, and names within the file."""

NUMBER = re.compile(r"[-+]?(?:\d+[.]?\d*|[.]\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)")


def visible(text: str, keep: str = "") -> str:
    """Return a text in which every character shows: others stand as escapes such as ``\\x1b`` and ``\\u202e``.

    Those are control characters but for those to ``keep``, marks of direction, characters without width, halves of
    surrogate pairs, line separators and code points without a character. Joiners stay where a script needs them.
    """
    if text.isprintable() and INVISIBLE.isdisjoint(text):
        return text
    return "".join(
        each if each in keep or _shows(each) or (each in JOINERS and _joins(text, place)) else _escape(each)
        for place, each in enumerate(text)
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _joins(text: str, place: int) -> bool:
    """Say whether the joiner at ``place`` follows a virama, or keeps two Arabic letters apart (RFC 5892, A.1, A.2)."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if before and unicodedata.combining(before) == 9:
        return True
    return text[place] == "\u200c" and all(each and unicodedata.bidirectional(each) == "AL" for each in (before, after))


def _shows(character: str) -> bool:
    printable = character.isprintable() or unicodedata.category(character) == "Zs"
    return printable and character not in INVISIBLE


def shortened(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters: of a longer one the beginning and the end."""
    end = most // 3
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def terminal(text: str) -> str:
    """Return what a terminal shows as one line; nothing in it steers the terminal."""
    return shortened(visible(re.sub("[\t\n]", " ", text)), LONGEST)


def terminal_lines(text: str) -> str:
    """Return text of any length for a terminal, with the ends of lines that it has."""
    return visible(text, "\n\t")


def markdown(text: str) -> str:
    """Return a text on one line of which Markdown makes no markup, link, mention or end of a cell."""
    words = SPACE.sub(" ", text).strip()
    line = MARKUP.sub(r"\\\g<0>", shortened(visible(words), LONGEST))
    return LINKED.sub(r"\g<0><!-- -->", NUMBERED.sub(r"\1\\", BLOCK.sub(r"\\", line, count=1), count=1))


def html(text: str) -> str:
    """Return a text for the content of an HTML element, or for an attribute in quotes."""
    return escape(visible(text, "\n\t"))


def xml(text: str) -> str:
    """Return a text that XML can hold, for a library that writes ``&lt;`` itself."""
    return visible(text, "\n\t")


def csv_cell(value: object) -> object:
    """Return an entry of a CSV file of which a spreadsheet makes no formula: text that may be one begins with ``'``.

    So does text that begins with ``'`` itself. Numbers stay as they are. Characters that cannot be seen are
    escapes, as the file may be shown on a terminal.
    """
    if not isinstance(value, str):
        return value
    text = visible(value, "\n\t")
    risky = text.startswith(("'", *FORMULA)) or text.lstrip().startswith(FORMULA)
    return f"'{text}" if risky and not NUMBER.fullmatch(text) else text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return a CSV file of ``rows``, each of which ends with a line feed."""
    lines = []
    for row in rows:
        line = io.StringIO(newline="")
        csv.writer(line).writerow(map(csv_cell, row))  # its line ends, CR LF, say what is quoted
        lines.append(f"{line.getvalue().removesuffix(chr(13) + chr(10))}\n")
    return "".join(lines)


def label(text: str) -> str:
    """Return the text of a figure: a few lines that end somewhere."""
    lines = [shortened(line, LONGEST_LABEL) for line in visible(text, "\n").split("\n", MOST_LABEL_LINES)]
    return "\n".join(lines[:MOST_LABEL_LINES]) + "…" * (len(lines) > MOST_LABEL_LINES)


def file_name(text: str) -> str:
    """Return a file's name without its ending; it lies in the folder where it is written, whatever ``text`` is.

    One that cannot have the text's own name, because of its characters or its length, ends with a digest of the text,
    so that no two texts share a file.
    """
    name = re.sub(r"[^\w.=-]+", "-", text)
    name = f"-{name[1:]}" if name.startswith(".") else name or "-"
    if name == text and len(name.encode()) <= LONGEST_FILE_NAME and not TAKEN.search(name):
        return name
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{name.encode()[: LONGEST_FILE_NAME - 17].decode(errors='ignore')}-{digest}"


def svg(text: str) -> str:
    """Return a figure of somebody's run as an SVG element for a page that runs scripts, such as a notebook.

    Only what our figures are drawn with is left: shapes, their looks, pictures within the file, and links within it.
    Raises BadInput for a text that is no SVG, or that declares entities.
    """
    try:
        if "<!ENTITY" in text:
            raise BadInput("it declares entities")
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError) as error:
        raise BadInput(f"no SVG that orch has drawn: {error}; draw it anew: orch report RUN") from None
    if root.tag != f"{{{SVG}}}svg":
        raise BadInput("no SVG that orch has drawn; draw it anew: orch report RUN")
    _strip(root)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    return ET.tostring(root, encoding="unicode")


def _strip(element: ET.Element) -> None:
    """Take away what no figure of ours has, from an element and from all in it: text, but for plain looks."""
    for name, value in list(element.attrib.items()):
        if not _is_harmless(name, value):
            del element.attrib[name]
    if _kind(element) != "style":
        element.text = None
    for child in list(element):
        child.tail = None
        if _is_drawn(child):
            _strip(child)
        else:
            element.remove(child)


def _is_drawn(element: ET.Element) -> bool:
    if _kind(element) == "style":
        return not len(element) and STYLE.fullmatch(element.text or "") is not None
    return _kind(element) in DRAWN


def _kind(element: ET.Element) -> str:
    return str(element.tag).removeprefix(f"{{{SVG}}}")


def _is_harmless(name: str, value: str) -> bool:
    if name in ("href", f"{{{XLINK}}}href"):
        return LOCAL.fullmatch(value) is not None
    if name == "style":
        looks = [look.partition(":") for look in value.split(";") if look.strip()]
        return all(LOOKS.fullmatch(look.strip()) and PLAIN.fullmatch(said) for look, _, said in looks)
    return bool(ATTRIBUTES.fullmatch(name) and PLAIN.fullmatch(value))
