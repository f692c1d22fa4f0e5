"""No name in scores, results or plans becomes markup, a formula or an order to a terminal, by any command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator import Report
from orchestrator.cli.main import main
from orchestrator.engine import media
from orchestrator.engine.run.tracking import log_result
from orchestrator.engine.run.tracking_names import NOTE
from orchestrator.kinds import kind_named
from tests.cases.apollo_result import settings as varied
from tests.cases.apollo_result import write_run, write_whole_run
from tests.cases.hostile_names import (
    HALVES,
    NAMES,
    Elements,
    cells,
    formulas,
    hostile,
    leads_away,
    live_markdown,
    live_svg,
    read_markdown,
    read_svgs,
    steering,
)
from tests.cases.kept import finished
from tests.cases.runs import draw_only
from tests.orchestrator.gnq.drawn_result import write_gnq_run
from tests.orchestrator.tmia.drawn_result import write_tmia_run

ROWS = 40
FEW = settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
MIXED = (NAMES[1], NAMES[3], NAMES[6], NAMES[7], NAMES[13])
"""A name for each medium: Markdown, HTML, terminal, spreadsheet, figure."""
THREE = [NAMES[place : place + 3] for place in range(0, len(NAMES), 3)]
long = pytest.mark.long


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def said(*words: str) -> tuple[int, str]:
    """Run a command; return its exit code and all that it printed, which steers no terminal."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(list(words))
    assert not steering(printed.getvalue()), words[0]
    return code, printed.getvalue()


def refused(*words: str) -> str:
    """Run a command that must be refused in one line; return that."""
    code, text = said(*words)
    assert code == 2 and len(text.splitlines()) == 1, text[:500]
    return text


def scores(folder: Path, attacks: Sequence[str], group: str, shift: float = 0.0) -> Path:
    """Write a file of scores; all of its names are given."""
    rng = np.random.default_rng(0)
    member = np.arange(ROWS) % 2
    columns: dict[str, list[Any]] = {
        "member": member.tolist(),
        "of": [group if each < ROWS // 2 else "b" for each in range(ROWS)],
    }
    columns |= {attack: (rng.normal(size=ROWS) + member + shift).tolist() for attack in attacks}
    columns["id"] = [f"{group}{each}" for each in range(ROWS)]
    file = folder / "scores.json"
    file.write_text(json.dumps(columns))
    return file


def all_is_text(out: Path, names: Sequence[str], like: Elements, *, curves: bool = False) -> None:
    """Read page, figures and their tables; ``like``: the page of the same run with ordinary names."""
    page = Elements((out / "report.html").read_text(encoding="utf-8"))
    assert page.found <= like.found, page.found - like.found
    assert not [link for link in page.links if leads_away(link)]
    assert not steering("".join(page.said).replace("\t", ""))
    for root in read_svgs(out / "figures"):
        assert live_svg(root) == []
    found = set()
    for file in (out / "figures").glob("*.csv"):
        text = file.read_bytes().decode()
        assert formulas(text) == [] and not steering(text.replace("\t", "")), file.name
        found |= cells(text)
    if curves:
        assert {media.visible(name, "\n\t") for name in names} <= found


def score(folder: Path, attacks: Sequence[str], group: str) -> Path:
    """Judge scores and write all files; return their folder."""
    out = folder / "out"
    file = scores(folder, attacks, group)
    words = ["score", str(file), "--member", "member", "--group", "of", "--point", "id", "--out", str(out)]
    words += [f"--score={attack}" for attack in attacks] + ["--fail-above", "auc=0.1"]
    code, text = said(*words, "--junit", str(folder / "orch.xml"), "--summary", str(folder / "orch.md"))
    assert code == 1, text[-500:]
    return out


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Elements:
    """The page of scores with ordinary names."""
    return Elements((score(tmp_path_factory.mktemp("scores"), ("lira", "loss"), "a") / "report.html").read_text())


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Draw no figure meanwhile: those of the run have been read."""
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "none")
        yield


def judged_scores_are_text(attacks: Sequence[str], group: str, ordinary: Elements) -> None:
    group = group.replace("\0", "")  # which scores may not have
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        out = score(folder, attacks, group)
        all_is_text(out, attacks, ordinary, curves=True)
        with undrawn():
            reports_are_text(out, folder)


def reports_are_text(out: Path, folder: Path) -> None:
    """Write the files of a finished run again, and read them, as Markdown and in a notebook too."""
    xml, summary = folder / "orch.xml", folder / "orch.md"
    assert said("report", str(out), "--junit", str(xml), "--summary", str(summary))[0] == 0
    document = json.loads((out / "result.json").read_text())
    suite = ET.parse(xml).getroot()[0]
    gate = document.get("gate", {"limits": []})
    assert len([each for each in suite.iter("testcase") if each.attrib["classname"].endswith(".gate")]) == len(
        gate["limits"]
    )
    text = summary.read_bytes().decode()
    assert live_markdown(text, links=int("](<" in text)) == [] and not steering(text)
    assert (
        text.startswith("## ") and text.count("\n## ") == 0 and text.rstrip().rpartition("\n")[2].startswith("Page: ")
    )
    code, tables = said("report", str(out), "--markdown")
    assert code == 0 and live_markdown(tables) == []
    assert said("report", str(out))[0] == 0
    report = Report(out)
    if document["kind"] != "score":
        cell = Elements(report._repr_html_())
        assert not [each for each in cell.found if each[0] in ("script", "img", "a", "iframe")]
    for figure in report.figures.values():
        assert live_svg(ET.fromstring(figure._repr_svg_())) == []


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(MIXED, id="a name for each medium"),
        *(pytest.param(names, marks=long, id=f"names {place}") for place, names in enumerate(THREE)),
    ],
)
def test_known_names_of_attacks_and_targets(
    names: Sequence[str], ordinary: Elements, monkeypatch: pytest.MonkeyPatch
) -> None:
    if names == MIXED:  # one figure stands for all
        draw_only(monkeypatch, "auc")
    judged_scores_are_text(names, names[-1], ordinary)


@long
@given(attacks=st.lists(hostile(), min_size=2, max_size=2, unique_by=str.strip), group=hostile())
@settings(FEW)
def test_any_names_of_attacks_and_targets(attacks: list[str], group: str, ordinary: Elements) -> None:
    names = ("member", "of", "id", "")
    if not {attack.strip() for attack in attacks} & set(names) and group.replace("\0", "").strip() not in ("", "b"):
        judged_scores_are_text(attacks, group, ordinary)


@pytest.mark.long
@pytest.mark.parametrize("name", [NAMES[6], *(pytest.param(NAMES[place], marks=long) for place in (0, 13, 14, 21))])
def test_comparisons(name: str, tmp_path: Path) -> None:
    """In short: ``tests/orchestrator/engine/test_writers.py``, and the page of scores, above."""
    folders = [tmp_path / "a", tmp_path / media.file_name(name)[:40]]
    for folder in folders:
        folder.mkdir()
    with undrawn():  # figures of scores: test_known_names_of_attacks_and_targets
        outs = [score(folder, (name, "loss"), name) for folder in folders]
    out = tmp_path / "compared"
    code, _ = said("compare", *map(str, outs), "--out", str(out))
    assert code == 0
    like = Elements((out / "report.html").read_text())
    assert not [each for each in like.found if each[0] in ("img", "iframe")] and not any(map(leads_away, like.links))
    assert all(live_svg(root) == [] for root in read_svgs(out / "figures"))
    assert all(formulas(file.read_bytes().decode()) == [] for file in (out / "figures").glob("*.csv"))
    assert said("compare", str(outs[0]), str(outs[1]), f"--attack={name}x")[0] == 2


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return the content of a JSON file with other names."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): renamed(each, names) for key, each in value.items()}
    return [renamed(each, names) for each in value] if isinstance(value, list) else value


def rename(out: Path, names: Mapping[str, str], odd: str) -> None:
    """Give the things in a finished run other names, and let it say ``odd`` where it says something."""
    document = json.loads((out / "result.json").read_text())
    plan = document["plan"]
    document = renamed(document, names) | {
        "name": odd,
        "warnings": [odd],
        "notes": [odd],
        "plan_hash": odd,
        "plan": plan,
    }
    plan["data"] |= {"name": f"folder:{odd}"}
    document["versions"][odd] = odd
    (out / "result.json").write_text(json.dumps(document))
    table = pq.read_table(out / "scores.parquet")
    for place, column in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(place).type):
            texts = [names.get(each, each) for each in table[column].to_pylist()]
            table = table.set_column(place, column, pa.array(texts))
    pq.write_table(table, out / "scores.parquet")


MOST_IN_SCORES = 3000
"""Characters of a name that scores repeat line by line; more than any medium shows."""
APOLLO = {"lira": 0, "scrub": 1, "beta=2": 2}
WRITERS = {
    "apollo": (lambda out: write_run(out, sweep=True), ("lira", "scrub", "beta=1", "beta=2")),
    "apollo, whole": (write_whole_run, ("lira", "scrub")),
    "tmia": (
        lambda out: write_tmia_run(out, {"base": {}, "I, beta=0.5": {"audit.beta": 0.5}}),
        ("tmia_distance", "kmeans", "I, beta=0.5"),
    ),
    "gnq": (lambda out: write_gnq_run(out, {"base": {}, "late": {"signal": 1.0}}), ("late", "lira")),
}


def whole_runs_are_text(kind: str, names: Sequence[str], odd: str) -> None:
    (write, old), names = WRITERS[kind], [name[:MOST_IN_SCORES] for name in names]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder / "out")
        assert said("report", str(folder / "out"))[0] == 0
        like = Elements((folder / "out" / "report.html").read_text())
        rename(folder / "out", dict(zip(old, names, strict=False)), odd)
        reports_are_text(folder / "out", folder)
        all_is_text(folder / "out", names, like)


LATER = [("apollo", first) for first in range(0, len(NAMES), 5)]
LATER += [(kind, first) for kind in WRITERS for first in (5, 13) if kind != "apollo"]


@long
@pytest.mark.parametrize(("kind", "first"), LATER)
def test_known_names_in_finished_runs(kind: str, first: int) -> None:
    names = (*NAMES, *NAMES)
    whole_runs_are_text(kind, names[first : first + 4], HALVES[first % 2] + names[first + 4])


def test_names_in_a_finished_run_and_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_only(monkeypatch, "verdict")
    whole_runs_are_text("tmia", MIXED[1:4], HALVES[0] + MIXED[0])


@long
@pytest.mark.parametrize("kind", WRITERS)
@given(st.lists(hostile(), min_size=4, max_size=4, unique=True), hostile(halves=True))
@settings(FEW)
def test_any_names_in_finished_runs(kind: str, names: list[str], odd: str) -> None:
    whole_runs_are_text(kind, names, odd)


@pytest.mark.long
def test_tracked_runs_are_text(tmp_path: Path) -> None:
    """In short: ``tests/orchestrator/engine/test_writers.py``."""
    from mlflow import MlflowClient

    out, kind = tmp_path / "out", kind_named("apollo")
    chosen = [entry for entry in varied(sweep=True) if entry["setting"] == "base"]
    write_run(out, sweep=True, chosen=chosen, targets=2, points=100)
    rename(out, {"lira": NAMES[2], "scrub": NAMES[1] + NAMES[6]}, "odd")
    document = json.loads((out / "result.json").read_text())
    document["plan"]["data"]["name"] = f"folder:{NAMES[6]}"
    told = log_result(kind, document, out, f"sqlite:///{tmp_path}/mlflow.db", "orch", tables={})
    client = MlflowClient(tracking_uri=told["uri"])
    runs = [client.get_run(run).data for run in (told["parent"], *told["children"].values())]
    texts = [text for run in runs for text in (*run.tags.values(), *run.params.values())]
    assert any("\\x1b" in text for text in texts) and not any(map(steering, texts))
    note = runs[0].tags[NOTE]
    assert live_markdown(note) == [] and read_markdown(note)


QUOTED = (*MIXED, *HALVES, NAMES[15], NAMES[21])
"""Names that steer a terminal, one that is endless, and one for each medium."""


def messages(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield commands whose refusals quote what the user wrote."""
    for name in names:
        yield "validate", f"--set=data.name={name}"
        yield "validate", f"--set={name}=1"
        yield "audit", "mia", f"--set=audit.attacks=[{json.dumps(name)}]"
        yield "cost", f"--set=model.name={json.dumps(name)}"
        yield "audit", "mia", f"--fail-above={name}=0.1"
        if "\0" not in name and name != HALVES[0]:  # no argument of a process can be one
            yield "report", f"./{name}"
            yield "score", f"./{name}"
            yield "validate", f"./{name}.yaml"


MESSAGES = [
    *messages(QUOTED),
    *(pytest.param(words, marks=long) for words in messages([name for name in NAMES if name not in QUOTED])),
]


@pytest.mark.parametrize("words", MESSAGES, ids=lambda words: words[0])
def test_messages_quote_names_on_one_line(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, text = said(*words)
    assert code == 2 and len(text) < 20_000, text[-500:]
    assert all(line.startswith(("orch: ", "warning: ")) for line in text.splitlines())
    if words[0] != "validate" and "audit" in words:
        refused(*words, "--junit", "orch.xml", "--summary", "orch.md")
        assert next(iter(ET.parse("orch.xml").getroot().iter("error"))).attrib["type"] == "exit code 2"
        assert live_markdown(Path("orch.md").read_bytes().decode()) == []


@given(hostile(halves=True))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_plans_of_any_names_are_refused_in_lines(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "plan.yaml"
        file.write_text(
            json.dumps({"audit": {"kind": "mia", name: 1}, "data": {"name": name}, "model": {"name": name}})
        )
        code, text = said("validate", str(file))
        assert code == 2 and all(line.startswith("orch: ") for line in text.splitlines())


@pytest.mark.long
@pytest.mark.parametrize(
    "raw",
    [
        b"\xff\x1b[31m\n$\\frac{$.json",
        *(pytest.param(raw, marks=long) for raw in (b"\xff.json", b"\x1b[31m.json", b"$\\frac{$.json", b"=1.json")),
        pytest.param(b"new\nline.json", marks=long),
    ],
)
def test_files_of_any_name(raw: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In short: the names of attacks and targets, above."""
    draw_only(monkeypatch, "verdict")
    file = os.path.join(os.fsencode(tmp_path), raw)
    scores(tmp_path, ("lira", "loss"), "a")
    os.rename(tmp_path / "scores.json", file)
    out = tmp_path / "out"
    words = ("--member=member", "--score=lira", "--group=of", "--out", str(out))
    assert said("score", os.fsdecode(file), *words)[0] == 0
    with undrawn():
        reports_are_text(out, tmp_path)


def test_a_figure_of_a_stranger_runs_nothing_in_a_notebook(tmp_path: Path) -> None:
    out = finished("mia", tmp_path / "out")
    figure = out / "figures" / "roc.svg"
    before = ET.fromstring(figure.read_bytes())
    shown = ET.fromstring(Report(out).figure("roc")._repr_svg_())
    kinds = [[each.tag for each in root.iter() if "svg}" in str(each.tag)] for root in (before, shown)]
    kinds[0].remove("{http://www.w3.org/2000/svg}metadata")
    assert kinds[0] == kinds[1]
    figure.write_text(figure.read_text().replace("</svg>", '<script>alert(1)</script><g onload="x()"/></svg>'))
    assert live_svg(ET.fromstring(Report(out).figure("roc")._repr_svg_())) == []


def test_a_summary_shows_names_as_they_are(tmp_path: Path) -> None:
    names = (NAMES[4], NAMES[5])
    with undrawn():
        score(tmp_path, names, "a")
    text = read_markdown((tmp_path / "orch.md").read_text())
    assert all(name in text for name in names)
    plan = yaml.safe_load((tmp_path / "out" / "result.json").read_text())["plan"]
    assert plan["files"]
