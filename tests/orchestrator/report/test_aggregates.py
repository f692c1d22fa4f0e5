"""Runs with --aggregate-only: no id, score or picture of a single point is in any file, and every aggregate stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from audits.data.duplicates import Copies
from orchestrator.apollo.result.rows import RadiusSide
from orchestrator.cli.main import main
from orchestrator.engine.run.copies import crossing
from orchestrator.engine.run.drawing import kept_elsewhere
from orchestrator.engine.run.run import run_audit
from orchestrator.gnq.given.rows import GivenResult
from orchestrator.kinds import kind_named
from orchestrator.report import writing
from orchestrator.report.result import read_result
from orchestrator.report.rows import without_points
from tests.cases.apollo_result import write_whole_run
from tests.cases.reopened import store_of
from tests.cases.runs import Terminal, audited, claim_folder, draw_only
from tests.cases.smallest_plans import REMOVAL, smallest_plan
from tests.orchestrator.gnq.drawn_result import write_gnq_run
from tests.orchestrator.tmia.drawn_result import write_tmia_run

pytestmark = pytest.mark.slow

SMALLEST: dict[str, dict[str, Any]] = {
    "apollo": {"audit.attacks": ["apollo", "u_lira"]},
    "tmia": {"audit.attacks": ["tmia", "tmia_posterior"]},
    "gnq": {"audit.attacks": ["lira", "loss"], "defences": [REMOVAL]},
    "mia": {"audit.attacks": ["lira", "label_gap"]},
    "gnq, given": {},
}
"""Smallest plan → what of it is smaller still: all that its models are asked is in the store of the finished run."""
TEXTS = (".json", ".html", ".csv", ".svg", ".yaml", ".md", ".xml")
SVG = re.compile("<svg.*?</svg>", re.DOTALL)
EMPTY = '"point_id": []'
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{4,}(?:e-?\d+)?")
DRAWN: dict[str, tuple[Any, list[str]]] = {
    "apollo": (write_whole_run, []),
    "tmia": (
        lambda out: write_tmia_run(out, {"I": {"audit.mode": "I"}}),
        ["Members that are recognised", "I: TMIA, distance, selection by k-means distance (12 of 26)"],
    ),
    "gnq": (
        lambda out: write_gnq_run(out, inverted=True),
        ["The most exposed points", "Pool 0, point 7, class s7"],
    ),
}
"""Kind → what writes a whole result of it, and the headings that its page then lacks."""
HEADINGS = re.compile(r"<(?:h2|h3|summary)[^>]*>([^<]+)<")


def texts_in(folder: Path) -> Iterator[tuple[Path, str]]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in TEXTS:
            yield file, file.read_text(encoding="utf-8")


def scores_of(folder: Path) -> list[float]:
    """Return the scores of single points, but for round numbers, which anything may hit."""
    table = pq.read_table(folder / "scores.parquet")
    names = {"score", "statistic", "uniqueness", "log_uniqueness", "squared_norm", "loss"} & set(table.column_names)
    values = np.concatenate([table[name].drop_null().to_numpy().astype(float) for name in sorted(names)])
    return [value for value in values[np.isfinite(values)].tolist() if value != round(value, 4)]


def held(text: str, scores: list[float], digits: int) -> float:
    """Return the share of ``scores`` that stand in a text, with so many significant digits."""
    found = {f"{float(number):.{digits}g}" for number in NUMBER.findall(text)}
    return float(np.mean([f"{score:.{digits}g}" in found for score in scores]))


def keys_of(value: Any) -> Iterator[str]:
    """Yield the keys of all objects in the rows of a result, but those of its plan."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield name
            if name not in ("plan", "verdict", "gate"):
                yield from keys_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from keys_of(each)


def settled(document: Mapping[str, Any]) -> dict[str, Any]:
    volatile = ("seconds", "date", "population", "tracking")
    return {name: value for name, value in json.loads(json.dumps(document)).items() if name not in volatile}


LARGE = ("apollo", "gnq")
"""Plans whose runs are long ones here: what their pages lose is looked at below."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in LARGE)) for name in SMALLEST])
def test_no_file_of_a_run_tells_of_a_single_point_and_aggregates_are_those_of_a_complete_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "auc", "forest", "roc", "radii", "confidence", "loss", "reconstruction", "distribution")
    plan, out = smallest_plan(name, store_of(name, tmp_path / "store"), **SMALLEST[name]), tmp_path / "out"
    whole, scores = audited(plan, out).to_json(), scores_of(out)
    (out / "figures").mkdir()
    (out / "figures" / "radii_scrub.csv").write_text("of an earlier run")
    (out / "report.html").write_text("of an earlier run")
    kind = kind_named(plan.kind)
    found = run_audit(kind, plan, out, Terminal(claim_folder(out, plan)), aggregate_only=True).to_json()
    assert settled(found) == settled(kind.open_page().aggregates(whole))
    assert found["aggregate_only"] is True and found["pictures"] is False and len(found["table"]) == len(whole["table"])
    assert found["verdict"] == whole["verdict"]
    if name != "gnq, given":  # which loses the highest score, that of one point
        assert found["table"] == whole["table"]
    assert json.loads((out / "result.json").read_text())["aggregate_only"] is True
    assert not list(out.rglob("scores.parquet")) and list(out.rglob("mlartifacts/**/result.json"))
    signs = ("point_id", "data:image", "earlier run")
    told = [(file, sign) for file, text in texts_in(out) for sign in signs if sign in text.replace(EMPTY, "")]
    assert told == []
    assert held((out / "result.json").read_text(), scores, 9) == 0.0
    figures = {file.name: held(SVG.sub("", text), scores, 6) for file, text in texts_in(out) if file.suffix != ".svg"}
    assert max(figures.values()) < 0.02, figures  # one may be hit by chance; a file about points would hold all
    page = (out / "report.html").read_text()
    assert "Aggregates only" in page and "plan.yaml --out again --aggregate-only" in page

    capsys.readouterr()
    assert main(["report", str(out)]) == 2
    refused = capsys.readouterr().err
    assert "kept no scores (--aggregate-only)" in refused and len(refused.splitlines()) == 1
    assert main(["report", str(out), "--markdown", "--junit", str(out / "junit.xml")]) == 0
    assert "|" in capsys.readouterr().out and (out / "junit.xml").is_file()
    assert main(["report", str(out), "--summary", str(out / "summary.md")]) == 0
    assert not list(out.rglob("scores.parquet"))


def sketched(makers: writing.Makers, folder: Path) -> dict[str, str]:
    """Make figures about points and one that is not; their files are empty."""
    names = ("confidence", "loss", "reconstruction", "radii")
    drawn = [name for name, make in makers.items() if name.startswith(names) and make() is not None]
    folder.mkdir(exist_ok=True)
    for name in drawn:
        (folder / f"{name}.svg").touch()
    return dict.fromkeys(drawn, "<svg></svg>")


@pytest.mark.parametrize("kind", list(DRAWN))
def test_the_page_of_a_whole_result_loses_its_points_and_nothing_else(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, gone = DRAWN[kind]
    write(tmp_path)
    monkeypatch.setattr(writing, "draw", sketched)
    page = kind_named(kind).open_page()
    document = read_result(tmp_path)
    less = page.aggregates(document)
    assert "point_id" in set(keys_of(document)) - set(keys_of(less))
    assert less["verdict"] == document["verdict"] and page.closing_lines(less) == page.closing_lines(document)
    full = page.write(tmp_path, None).read_text()
    drawn = {file.stem for file in (tmp_path / "figures").glob("*.svg")}
    for file in (tmp_path / "figures").glob("*"):
        file.unlink()
    (tmp_path / "result.json").write_text(json.dumps(less))
    bare = page.write(tmp_path, None).read_text()
    assert [title for title in HEADINGS.findall(full) if title not in HEADINGS.findall(bare)] == gone
    left = {file.stem for file in (tmp_path / "figures").glob("*.svg")}
    assert drawn - left == ({"confidence", "loss"} if kind == "tmia" else set())


def test_a_number_that_rests_on_few_points_is_left_out() -> None:
    side = {"intervals": 9, "low": 0.1, "high": 0.2, "flips": 10, "at_x": 0, "flip": 0.3, "early": 0}
    assert without_points(RadiusSide, side) == side | {"low": None, "high": None}
    classes = [{"label": name, "points": count, "uniqueness": 0.1} for name, count in (("a", 9), ("b", 10))]
    found = without_points(GivenResult, {"classes": classes, "table": [{"highest": 3.0, "bits": 0.5}], "later": [1]})
    assert found == {"classes": classes[1:], "table": [{"highest": None, "bits": 0.5}], "later": [1]}


def test_warnings_name_no_point_and_tell_of_scores_that_an_earlier_run_left(tmp_path: Path) -> None:
    copies = Copies(asked=10, exact=1, near=None, example=(31, 47))
    assert "31 and 47" in crossing(copies, (31, 47), "digits")
    assert not re.search(r"31|47|such as", crossing(copies, None, "digits"))
    assert kept_elsewhere(tmp_path) == []
    (tmp_path / "mlartifacts" / "1").mkdir(parents=True)
    (tmp_path / "mlartifacts" / "1" / "scores.parquet").touch()
    assert "delete that folder" in kept_elsewhere(tmp_path)[0]
