"""Text of others in each medium, read back by the medium's own reader."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from audits.errors import BadInput
from orchestrator.engine import media
from orchestrator.report.style import save
from tests.cases.hostile_names import (
    HALVES,
    NAMES,
    Elements,
    formulas,
    hostile,
    live_markdown,
    live_svg,
    read_markdown,
    steering,
)

ORDINARY = (
    "gradient_ascent",
    "python:mine:late",
    "LiRA (β = 2)",
    "café – 5\N{NO-BREAK SPACE}%",
    "β=0.5, ε=−1",
    "学習",
    "می\N{ZERO WIDTH NON-JOINER}خواهم",  # Persian
    "क्\N{ZERO WIDTH JOINER}ष क्\N{ZERO WIDTH NON-JOINER}ष",  # Devanagari
    "അവന്\N{ZERO WIDTH JOINER}",  # Malayalam, a chillu
)


def test_ordinary_names_stay_as_they_are() -> None:
    for name in ORDINARY:
        for write in (
            media.visible,
            media.terminal,
            media.markdown,
            media.html,
            media.xml,
            media.label,
            media.csv_cell,
        ):
            assert write(name) == name, write
    for number in ("-1", "+0.5", "-1.5e-3", ".5", "-inf", -2.0, 7):
        assert media.csv_cell(number) == number
    assert media.file_name("table-β=0.5") == "table-β=0.5"


@pytest.mark.parametrize(
    "name", ["ca\u200dt", "\u200c", "م\u200c", "م\u200dخ", "م\u200c\u200cخ", "a\u200cخ", "م\u202eخ", "क\u2066ष"]
)
def test_joiners_show_where_no_script_needs_them_and_marks_of_direction_always(name: str) -> None:
    assert not steering(media.visible(name))
    assert re.search(r"\\u20[026][0-9a-e]", media.visible(name))


@given(hostile(halves=True))
@example(HALVES[0])
@example(NAMES[6])
@example(NAMES[-5])
def test_a_terminal_and_a_label_are_not_steered(name: str) -> None:
    assert not steering(media.terminal(name)) and "\n" not in media.terminal(name)
    assert not steering(media.terminal_lines(name).replace("\t", ""))
    label = media.label(name)
    assert not steering(label) and len(label.split("\n")) <= 5 and max(map(len, label.split("\n"))) <= 161


@given(hostile(halves=True))
def test_markdown_shows_a_name_and_does_nothing(name: str) -> None:
    text = media.markdown(name)
    assert not steering(text) and "\n" not in text
    assert live_markdown(text) == [] and live_markdown(f"| a | b |\n| --- | --- |\n| {text} | x |") == []
    shown = media.visible(" ".join(name.split()))
    assert read_markdown(text) == shown
    rows = read_markdown(f"| a | b |\n| --- | --- |\n| {text} | x |")
    assert rows == f"ab{shown}x"


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) < 1000])
def test_markdown_of_known_names(name: str) -> None:
    test_markdown_shows_a_name_and_does_nothing.hypothesis.inner_test(name)  # type: ignore[attr-defined]  # hypothesis


@given(hostile(halves=True))
def test_html_and_xml_give_a_name_back(name: str) -> None:
    page = Elements(f'<p title="{media.html(name)}">{media.html(name)}</p>')
    assert page.found == {("p", frozenset({"title"}))}
    element = ET.Element("x", {"y": media.xml(name)})
    element.text = media.xml(name)
    read = ET.fromstring(ET.tostring(element))
    assert read.text == (media.visible(name, "\n\t") or None) and not len(read)
    assert "".join(page.said) == media.visible(name, "\n\t")


@given(hostile(halves=True))
def test_csv_gives_a_name_back_and_runs_nothing(name: str) -> None:
    text = media.csv_text([[name, "'" + name, "x"], [1.5, "-2", name]])
    assert formulas(text) == []
    whole = media.visible(name, "\n\t")
    assert not steering(text.replace("\t", ""))
    (first, second, _), (*numbers, last) = csv.reader(io.StringIO(text, newline=""))
    assert first in (whole, f"'{whole}") and second == f"''{whole}"
    assert numbers == ["1.5", "-2"] and last == first


@given(hostile(halves=True))
@example("..")
@example("é" * 300)
@example("")
def test_a_file_lies_in_its_folder(name: str) -> None:
    file = media.file_name(name)
    assert file and "/" not in file and not file.startswith(".") and len(file.encode()) <= 200 and not steering(file)


NEAR = ("a b", "a-b", "a/b", "a  b", "a\tb", ".a", "-a", "..a", "", "-", "x" * 500 + "a", "x" * 500 + "b", "\ud800")


def test_names_that_differ_have_files_of_their_own() -> None:
    names = {*NEAR, *map(media.file_name, NEAR)}
    assert len(set(map(media.file_name, names))) == len(names)


SCRIPTS = """<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 onload="alert(1)" xml:base="http://evil.example/" style="position:fixed"><script>alert(1)</script>
<style>@import url(http://evil.example/x.css)</style><style>*{stroke-linejoin: round; stroke-linecap: butt}</style>
<a xlink:href="javascript:alert(1)"><path d="M0 0"/></a><foreignObject><body xmlns="http://www.w3.org/1999/xhtml"/>
</foreignObject><image href="http://evil.example/x.png"/><use xlink:href="http://evil.example/x.svg#y"/>
<g style="fill: url(http://evil.example/x); fill: red"><rect id="kept" style="fill: url(#a)" ONCLICK="alert(1)"/></g>
<set attributeName="href" to="javascript:alert(1)"/><image xlink:href="data:image/png;base64,AAAA"/></svg>"""


LOOKS = ("", "*{stroke-linejoin: round}", "*{position: fixed; display: block}", "@import url(//evil.example/x.css)")


def trees(inside: st.SearchStrategy[list[ET.Element]]) -> st.SearchStrategy[ET.Element]:
    """Return elements that hold those of ``inside``, with texts in, between and behind them."""

    def tree(kind: str, text: str, tail: str, inner: list[ET.Element]) -> ET.Element:
        found = ET.Element(f"{{{media.SVG}}}{kind}")
        found.text, found.tail = text, tail
        found.extend(inner)
        return found

    looks = st.sampled_from(LOOKS)
    return st.builds(tree, st.sampled_from(("style", "g", "path", "script", "text")), looks, looks, inside)


TREES = st.recursive(trees(st.just([])), lambda each: trees(st.lists(each, max_size=3)), max_leaves=8)


@given(st.lists(TREES, max_size=3))
def test_no_look_of_others_reaches_a_page_by_an_svg(elements: list[ET.Element]) -> None:
    """Wherever in a ``<style>`` it stands: before, in, between or behind elements."""
    root = ET.Element(f"{{{media.SVG}}}svg")
    root.extend(elements)
    kept = ET.fromstring(media.svg(ET.tostring(root, encoding="unicode")))
    assert live_svg(kept) == []
    plain = {f"{{{media.SVG}}}{kind}" for kind in ("g", "path")}
    assert len([each for each in kept if each.tag in plain]) == len([each for each in elements if each.tag in plain])
    said = [text for text in kept.itertext() if text.strip()]
    assert set(said) <= {LOOKS[1]}


@pytest.mark.parametrize(
    "attribute",
    [
        'data-commandlinker-command="terminal:create-new"',
        'class="jp-mod"',
        'tabindex="0"',
        'style="transform:scale(50)"',
        'style="fill: url(x.png)"',
        'style="fill: #000; position: fixed"',
        'clip-path="URL(x.svg)"',
        'transform="image(x.png)"',
    ],
)
def test_an_attribute_that_no_figure_has_is_taken_from_an_svg_of_others(attribute: str) -> None:
    kept = media.svg(f'<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0" {attribute}/></svg>')
    (path,) = ET.fromstring(kept)
    assert path.attrib == {"d": "M0 0"}


def test_a_figure_of_ours_stays_as_it_is(tmp_path: Path) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2, 3], [3, 1, 2], "o--", alpha=0.5)
    axes.imshow([[0.0, 1.0], [1.0, 0.0]])
    axes.fill_between([0, 1], [0, 1], alpha=0.2)
    axes.text(0.5, 0.5, "turned", rotation=30)
    save(figure, "drawn", tmp_path)
    drawn = (tmp_path / "drawn.svg").read_text()
    shapes = [each for each in ET.fromstring(drawn).iter() if str(each.tag).rpartition("}")[2] in media.DRAWN]
    kept = [*ET.fromstring(media.svg(drawn)).iter()]
    assert [each.tag for each in kept] == [each.tag for each in shapes]
    for one, other in zip(kept, shapes, strict=True):
        assert one.attrib == {name: value for name, value in other.attrib.items() if name != "type"}  # of <style>


def test_an_svg_of_others_keeps_shapes_alone() -> None:
    root = ET.fromstring(media.svg(SCRIPTS))
    assert live_svg(root) == [] and root.attrib == {}
    kept = [str(each.tag).rpartition("}")[2] for each in root.iter()]
    assert kept == ["svg", "style", "image", "use", "g", "rect", "image"]
    assert next(each for each in root.iter() if each.get("id")).attrib == {"id": "kept", "style": "fill: url(#a)"}
    for wrong in (
        "<svg",
        "<html/>",
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
    ):
        with pytest.raises(BadInput):
            media.svg(wrong)
