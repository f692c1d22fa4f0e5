"""A figure in a page: its colours follow the page, and its places are as exact as anybody sees."""

import re

import numpy as np
from matplotlib.figure import Figure

from orchestrator.report.style import for_page, save


def test_a_page_holds_a_smaller_figure_whose_places_are_those_of_the_file(tmp_path) -> None:
    figure = Figure()
    figure.subplots().plot(np.linspace(0, 1, 500), np.random.default_rng(1).random(500))
    element = save(figure, "noise", tmp_path)
    file = (tmp_path / "noise.svg").read_text()
    assert "var(--" in element and len(element) < 0.9 * len(file)
    assert re.findall(r'transform="[^"]*"', element) == re.findall(r'transform="[^"]*"', file)

    def paths(svg: str) -> list[tuple[list[str], list[float]]]:
        drawn = re.findall(r'\sd="([^"]*)"', svg)
        return [(re.findall("[A-Z]", path), [*map(float, re.findall(r"[-\d.e]+", path))]) for path in drawn]

    pairs = list(zip(paths(element), paths(file[file.index("<svg") :]), strict=True))
    assert len(pairs) > 10
    for (commands, places), (their_commands, their_places) in pairs:
        assert commands == their_commands
        np.testing.assert_allclose(places, their_places, rtol=0, atol=0.01)


def test_words_of_a_figure_are_left_alone() -> None:
    assert for_page('<svg><text x="1.23456" id="p1.23456">at 0.123456</text></svg>') == (
        '<svg><text x="1.23" id="p1.23456">at 0.123456</text></svg>'
    )
