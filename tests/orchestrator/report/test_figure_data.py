"""The numbers behind a figure: each mark that is drawn from numbers is in its table."""

import csv
import io

import numpy as np
from matplotlib.figure import Figure

from orchestrator.report.figure_data import data_of


def rows(figure: Figure) -> list[tuple[str, ...]]:
    head, *lines = csv.reader(io.StringIO(data_of(figure)))
    assert head == ["panel", "series", "mark", "x", "y", "value"]
    return [tuple(line) for line in lines]


def test_points_intervals_bands_bars_and_cells_are_told_and_words_stand_for_places() -> None:
    figure = Figure()
    first, second = figure.subplots(1, 2)
    first.set_title("AUC", loc="left")
    first.plot([0.5, 0.7], [0, 1], label="LiRA")
    first.hlines([1], 0.6, 0.8)
    first.set_yticks([0, 1], ["base", "late"])
    second.bar([1.0], [3.0], width=0.5)
    second.scatter([1, 2], [3, 4])
    second.fill_between([0, 1], [0, 0], [1, 2])
    second.imshow(np.array([[0.25, 0.75]]))
    found = rows(figure)
    assert ("AUC", "LiRA", "point", "0.5", "base", "") in found and ("AUC", "LiRA", "point", "0.7", "late", "") in found
    assert {line[3] for line in found if line[2] == "interval"} == {"0.6", "0.8"}
    assert ("", "", "bar", "1", "1.5", "3") in found and ("", "", "point", "2", "4", "") in found
    assert ("", "", "cell", "1", "0", "0.75") in found and any(line[2] == "band" and line[4] == "2" for line in found)
