"""One table, four forms: each says the same, and none lets a word break out of it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator.report.grid import Column, Entry, Grid, grid, group, left
from orchestrator.report.grid_formats import as_csv, as_html, as_markdown, as_terminal


@pytest.fixture
def table() -> Grid:
    columns = (
        left("who", merge=True),
        Column("AUC\n[95 %]"),
        Column("wide", narrow="nothing"),
        Column("rate", narrow="short"),
    )
    lines = [
        [
            "a|b",
            Entry(".7", "[.6, .8]", mark="*", tone="above", tooltip='"quoted"'),
            1,
            Entry(".1", "[.0, .2]", tone="miss"),
        ],
        ["a|b", ".5", 2, ".2"],
        ["<i>", ".4", 3, ".3"],
    ]
    groups = (group("first", lines[:2], "of two"), group("second", lines[2:]))
    return Grid("name/of it", "A title", columns, groups, "group")


def test_markdown_names_groups_in_a_column_and_escapes_bars(table: Grid) -> None:
    assert as_markdown(table).splitlines() == [
        "**A title**",
        "",
        "| group | who | AUC [95 %] | wide | rate |",
        "| --- | --- | --- | --- | --- |",
        "| first | a\\|b | .7 [.6, .8]* | 1 | .1 [.0, .2] |",
        "| first | a\\|b | .5 | 2 | .2 |",
        "| second | \\<i> | .4 | 3 | .3 |",
    ]
    assert as_markdown(grid("empty", "Nothing", ["a"], [])) == "**Nothing**"


def test_notes_stand_in_every_form_that_has_a_place(table: Grid) -> None:
    marked = replace(
        grid("x", "x", ["area under the curve"], [[Entry(".7", mark="*†")], [Entry(".5")]]),
        notes=("† a < b", "second"),
    )
    assert as_markdown(marked).endswith("| .5 |\n\n- † a < b\n- second")
    assert as_html(marked).endswith('</div>\n<p class="note">† a &lt; b<br>\nsecond</p>')
    console = Console(width=40, record=True, file=io.StringIO())
    console.print(as_terminal(marked))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert {"† a < b", "second"} <= {line.strip() for line in lines}
    assert "†" in as_csv(marked) and "second" not in as_csv(marked)


def test_html_merges_equal_first_entries_and_escapes_everything(table: Grid) -> None:
    text = as_html(table)
    assert '<th class="text" scope="row" rowspan="2">a|b</th>' in text and text.count("a|b") == 1
    assert '<td class="above" title="&quot;quoted&quot;">.7 <span class="ci">[.6, .8]</span>*</td>' in text
    assert '<td class="miss">.1 <span class="ci">' in text and "&lt;i&gt;" in text and "<i>" not in text
    assert '<th scope="col">AUC<br>[95 %]</th>' in text
    assert '<th colspan="4" scope="rowgroup">first: of two</th>' in text
    picture = as_html(grid("x", "x", ["p"], [[Entry("point 1", image="data:image/png;base64,AA")]]))
    assert '<img class="thumb" alt="point 1" src="data:image/png;base64,AA">' in picture


def test_csv_has_the_texts_of_markdown(table: Grid) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(table))))
    assert rows == [table.head, *table.texts] and rows[1] == ["first", "a|b", ".7 [.6, .8]*", "1", ".1 [.0, .2]"]
    assert table.file.startswith("name-of-it-")  # and what tells it from other names


def test_a_terminal_leaves_out_what_is_too_wide(table: Grid) -> None:
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(as_terminal(table))
    text = console.export_text()
    assert "wide" not in text and "[.0, .2]" not in text and ".7 [.6, .8]*" in text
    assert text.count("a|b") == 1 and any(line.strip() == "second" for line in text.splitlines())


def test_a_line_that_does_not_fit_its_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="a line of 1 entries for 2 columns"):
        grid("t", "t", ["a", "b"], [["alone"]])
