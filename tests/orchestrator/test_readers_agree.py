"""What a result says is said alike by all that read it: stars, flags and words; and numbers that are void.

Tiny runs of every kind, made once, and the same with other numbers.
"""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from orchestrator.api.report import Report
from orchestrator.apollo.page import verdict as apollo_words
from orchestrator.apollo.plan import CONTROLS
from orchestrator.apollo.result import judging as apollo_judging
from orchestrator.cli.finished import SCORED, headline_of, page_of
from orchestrator.cli.main import main
from orchestrator.engine.ci.junit import junit
from orchestrator.engine.run.tracking_headline import headline_of as tracked_headline
from orchestrator.gnq.given import judging as given_judging
from orchestrator.gnq.given.page import words as given_words
from orchestrator.gnq.page import verdict as gnq_words
from orchestrator.gnq.result import judging as gnq_judging
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import gates_of, judge_gates, ungated
from orchestrator.judgement.gate_result import GateResult
from orchestrator.judgement.rows import LEAK, UNTOLD
from orchestrator.kinds import kind_named, plan_from
from orchestrator.mia.page import verdict as mia_words
from orchestrator.mia.result import judging as mia_judging
from orchestrator.report.grid import Entry
from orchestrator.report.numbers import bounds, number
from orchestrator.report.result import read_result
from orchestrator.report.sentence import Sentence
from orchestrator.scored import judging as scored_judging
from orchestrator.scored.page import words as scored_words
from orchestrator.tmia.page import verdict as tmia_words
from orchestrator.tmia.result import judging as tmia_judging
from orchestrator.tmia.result.controls import judges_of
from tests.cases.kept import finished
from tests.cases.runs import audited, draw_only
from tests.cases.smallest_plans import smallest_plan

Document = dict[str, Any]
Row = dict[str, Any]
FEWER: Mapping[str, Mapping[str, Any]] = {
    "apollo": {
        "audit.attacks": ["apollo", "u_lira", "label_gap"],
        "audit.radii": False,
        "audit.disclosure": False,
        "split.targets": 2,
    },
    "mia": {"audit.attacks": ["lira", "loss", "label_gap"], "audit.judge": "lira"},
    "tmia": {"audit.attacks": ["tmia_posterior", "label_gap", "yeom"], "audit.selectors": ["none", "kmeans"]},
    "gnq": {
        "audit.attacks": ["loss", "lira"],
        "audit.inversion": None,
        "audit.gradient_inversion": None,
        "defences": [{"method": "remove", "ranking": "gnq_log", "share": 0.2}],
    },
}
"""Changes of the smallest plans that leave out what is not read here; of others the run is that of all tests."""
ALIKE = ("apollo, given", "mia, given", "tmia, given")
"""Runs of a given model, whose tables are those of other runs of their kind: they take part in long tests alone."""
RUNS = [
    *("apollo", "mia", "tmia", "gnq", "gnq, given", "score"),
    *(pytest.param(name, marks=pytest.mark.long) for name in ALIKE),
]

NEVER_VOID = ("gnq", "gnq, given")
"""Runs whose results have no number that can be void."""


def short_without(*names: str) -> list[Any]:
    """Return all runs, of which those with ``names`` are marked long too.

    The page of GNQ takes longest to make; rows of MIA are void as those of scores are.
    """
    return [pytest.param(name, marks=pytest.mark.long) if name in names else name for name in RUNS]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what returns the folder of a finished run, which is made when it is first asked for."""
    place, made = tmp_path_factory.mktemp("agreeing"), dict[str, Path]()

    def of(name: str) -> Path:
        if name not in made:
            made[name] = finish(name, place / name) if name in (*FEWER, "score") else finished(name)
        return made[name]

    return of


def finish(name: str, out: Path) -> Path:
    """Carry out a run of a name; return its folder."""
    if name != "score":
        audited(smallest_plan(name, Path(f"{out}-store"), **FEWER[name]), out)
        return out
    pq.write_table(some_scores(), out.with_suffix(".parquet"))
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "none")
        assert main(["score", str(out.with_suffix(".parquet")), "--out", str(out), "--quiet"]) == 0
    return out


def some_scores() -> pa.Table:
    """Return scores of three attacks on four models, two of which call members at promised rates: one too often."""
    rng, size = np.random.default_rng(0), 800
    member = np.arange(size) % 2 == 0
    columns: dict[str, list[Any]] = {
        name: [] for name in ("setting", "attack", "target", "point_id", "member", "score", "decision_0.1")
    }
    for attack, cut in (("careful", 1.6), ("bold", 0.3), ("blind", 1.7)):
        score = rng.normal(size=size) + (attack != "blind") * 0.7 * member
        columns["setting"] += ["base"] * size
        columns["attack"] += [attack] * size
        columns["target"] += np.repeat(["a", "b", "c", "d"], size // 4).tolist()
        columns["point_id"] += [str(place) for place in range(size)]
        columns["member"] += member.tolist()
        columns["score"] += score.tolist()
        columns["decision_0.1"] += (score > cut).astype(float).tolist()
    return pa.table(columns)


def rejudged(document: Mapping[str, Any]) -> Document:
    """Return a result as its rows are judged by the rules of this version, flags and all."""
    found = page_of(document).of(json.loads(json.dumps(document)))  # type: ignore[attr-defined]  # pages of runs do
    result = getattr(found, "result", found)
    judges: dict[str, Callable[[Any], Any]] = {
        "apollo": apollo_judging.judge,
        "gnq": gnq_judging.judge,
        "gnq-target": given_judging.judge,
        "mia": mia_judging.judge,
        "tmia": tmia_judging.judge,
        SCORED: scored_judging.judge,
    }
    return json.loads(json.dumps({**document, **judges[document["kind"]](result).document()}))


AUC, PRECISION = (tuple(f"{name}{end}" for end in Estimate.SUFFIXES) for name in ("auc", "precision"))
HEADLINE = ("auc", "low", "high")


@dataclass(frozen=True)
class Area:
    """A number of a result that may lie above ``chance``: its live ``row``, the ``names`` there, and its ``cell``.

    ``counts``: whether the verdict may rest on it.
    """

    row: Row
    names: tuple[str, ...]
    cell: tuple[Any, ...]
    counts: bool
    chance: float = 0.5

    @property
    def text(self) -> str:
        """What tables print of it, but for the star."""
        return text_of(Estimate(*(self.row[name] for name in self.names)))


def text_of(found: Estimate) -> str:
    """Return what tables print of a number."""
    return f"{number(found.value)} {bounds(found)}".strip()


def areas(document: Document) -> list[Area]:
    """Return the numbers of a result that tables mark where they lie above chance."""
    kind, table = document["kind"], document["table"]
    if kind == "gnq":
        at_random, arms = gnq_judging.CONTROLS, document["arms"]
        return [Area(arm["headline"], HEADLINE, (arm["arm"],), arm["ranking"] not in at_random) for arm in arms]
    if kind == "gnq-target":
        return [Area(row, AUC, (row["score"],), row["score"] == "loss") for row in document["separation"]]
    if kind == "tmia":
        judges = judges_of([row["attack"] for row in table])
        chosen = [name for name in document["plan"]["audit"]["selectors"] if name != "none"]
        main = next(name for name in (*chosen, "all", "none") if any(row["selection"] == name for row in table))
        return [
            Area(row, PRECISION, (row["selection"], row["attack"]),
                 row["attack"] in judges and row["selection"] == main, row["members"] / pairs)
            for row in table
            if (pairs := row["members"] + row["non_members"])
        ]  # fmt: skip
    return [Area(row, AUC, (row.get("unlearner"), row["attack"]), counted(document, row)) for row in table]


def counted(document: Document, row: Row) -> bool:
    """Say whether the verdict of a result may rest on a row of its table."""
    if document["kind"] == "apollo":
        return row["unlearner"] not in CONTROLS and row["access"] != "oracle"
    if document["kind"] == "mia":
        return row["attack"] == document["judge"] or row["access"] == "labels"
    return True


@dataclass(frozen=True)
class State:
    """Where a number stands to chance: it, its interval and its p-value; ``above``: by the rule.

    ``corrected``: it is the p-value that decides, which not all kinds have.
    """

    value: float
    low: float
    high: float
    p: float
    above: bool = False
    unsure: bool = False
    corrected: bool = False


STATES = {
    "far above": State(0.2, 0.1, 0.3, 0.001, above=True),
    "just above": State(0.1, 0.001, 0.2, 0.05, above=True),
    "interval just across": State(0.1, -0.001, 0.2, 0.001, unsure=True),
    "not after the correction": State(0.1, 0.02, 0.18, 0.0501, corrected=True),
    "across": State(0.02, -0.1, 0.12, 1.0),
    "below": State(-0.2, -0.3, -0.1, 0.001),
}


def fits(document: Document, state: State) -> bool:
    """Say whether results of this kind know such a state: those that test numbers beside each other do."""
    return not state.corrected or "auc_p_holm" in document["table"][0]


def with_controls(document: Document) -> Document:
    """Return a result whose controls hold, but for those that numbers above chance are."""
    changed = copy.deepcopy(document)
    for name in ("blind", "alike"):
        for row in changed.get(name, ()):
            row["differ"] = False
    for row in changed["table"]:
        kept = {"found_fpr_p": 0.5, "auc_p": 0.5, "found_fpr_off": False, "null_fpr_off": False}
        row |= {name: value for name, value in kept.items() if row.get(name) is not None}
        if row.get("moment") == "null":
            row |= {"auc": 0.5, "auc_low": 0.4, "auc_high": 0.6}
        if "beta" in row:
            row |= {name: 0.0 for name in ("fpr", "fpr_low", "null_fpr", "null_fpr_low") if row[name] is not None}
    return changed


def placed(document: Document, states: Sequence[State]) -> tuple[Document, list[State]]:
    """Return a result with each number in one of the states in turn, no two alike, and the states by number."""
    changed, found = with_controls(document), list[State]()
    cells: dict[tuple[Any, ...], int] = {}
    for area in areas(changed):
        place = cells.setdefault(area.cell, len(cells))
        state, shift = states[place % len(states)], 0.002 * place
        ends = (state.value + shift, state.low, state.high + shift)
        area.row.update(zip(area.names, (round(area.chance + end, 4) for end in ends), strict=True))
        if "auc_p_holm" in area.row:
            area.row["auc_p_holm"] = state.p
        found.append(state)
    return rejudged(changed), found


def entries_of(folder: Path, document: Document) -> Iterator[Entry]:
    """Yield the entries of all tables of a run, and of those that a terminal shows."""
    page: Any = page_of(document)
    for grid in [*page.grids(folder), *page.shown(document)]:
        for line in grid.lines:
            yield from line


def shown_texts(folder: Path, document: Document) -> dict[str, str]:
    """Return the texts of a run in which tables stand: page, terminal, Markdown, CSV and a notebook's cell."""
    page: Any = page_of(document)
    console = Console(width=400, record=True, file=open_nowhere())
    for table in page.tables(document):
        console.print(table)
    return {
        "page": tables_in((folder / "report.html").read_text(encoding="utf-8")),
        "terminal": console.export_text(),
        "markdown": page.markdown(folder),
        "csv": "\n".join(page.csv(folder).values()),
        "notebook": tables_in(Report(folder)._repr_html_() if document["kind"] != SCORED else html_of(page, document)),
    }


def open_nowhere() -> Any:
    """Return a file that keeps nothing to read."""
    return io.StringIO()


def html_of(page: Any, document: Document) -> str:
    """Return the tables of a result as a notebook shows them."""
    return "\n".join(page.html_tables(document))


def tables_in(html: str) -> str:
    """Return the cells of the tables of a page as text, one a line."""
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", html, re.DOTALL)
    return "\n".join(unescape(re.sub("<[^>]*>", "", cell)) for cell in cells)


def put(document: Document, folder: Path, source: Path) -> Path:
    """Write a result with the scores of a run."""
    copytree(source, folder, ignore=ignore_patterns("figures", "mlflow*"))
    (folder / "result.json").write_text(json.dumps(document))
    return folder


def written(document: Document, folder: Path, source: Path) -> Path:
    """Write a result with the scores of a run, and its page."""
    page_of(document).write(put(document, folder, source), None)
    return folder


def stars_agree(folder: Path, marked: Mapping[str, bool]) -> None:
    """Hold the star, or the bold type of TMIA, of each of the numbers to its flag in every table of every output."""
    document = read_result(folder)
    bold = document["kind"] == "tmia"
    seen = set[str]()
    for entry in entries_of(folder, document):
        text = str(Entry(entry.text, entry.beside))
        if text in marked:
            seen.add(text)
            assert ("*" in entry.mark or (bold and entry.tone == "above")) == marked[text], (text, entry)
    assert seen == set(marked), set(marked) - seen
    if not bold:
        for name, shown in shown_texts(folder, document).items():
            for text, flag in marked.items():
                found = re.findall(rf"(?<![\d−]){re.escape(text)}(\*?)", shown)
                assert all(bool(star) == flag for star in found), (name, text, found)
                assert found or name in ("terminal", "notebook", "page"), (name, text)


@pytest.mark.parametrize(
    "name",
    ["apollo", "mia", "score", *(pytest.param(f"{kind}, given", marks=pytest.mark.long) for kind in ("apollo", "mia"))],
)
def test_a_table_of_attacks_says_all_that_a_star_takes(run: Callable[[str], Path], name: str) -> None:
    document = read_result(run(name))
    page: Any = page_of(document)
    (table,) = [grid for grid in page.shown(document) if any(line[-1].text for line in grid.lines)]
    (said,) = [line.partition("* ")[2] for line in table.caption.splitlines() if "* " in line]
    assert "Holm" in said and "interval" in said


@pytest.mark.parametrize("name", RUNS)
def test_a_result_says_what_its_rows_come_to(run: Callable[[str], Path], name: str) -> None:
    document = read_result(run(name))
    again = rejudged(document)
    assert again["verdict"] == document["verdict"] and again["controls"] == document["controls"]
    of_gate = {each.name for each in ungated(headline_of(document), document).controls}
    assert of_gate == {each["name"] for each in document["verdict"]["controls"]}


HEADS_OF_POINTS = ("Single deleted points", "Exposed points", "Exposed members")
"""Sentences about points that are found one by one, which rests on other numbers."""


def sentences(document: Document) -> Sequence[Sentence]:
    """Return the sentences of a page."""
    found: Any = page_of(document).of(document)  # type: ignore[attr-defined]  # pages of runs do
    said: Sequence[Sentence] = {
        "apollo": apollo_words.verdict, "mia": mia_words.verdict, "tmia": tmia_words.verdict, "gnq": gnq_words.verdict,
        "gnq-target": given_words.verdict, SCORED: lambda run: scored_words.verdict(run.result),
    }[document["kind"]](found)  # fmt: skip
    return said


def leaks_told(document: Document) -> bool:
    """Say whether the sentences of a page tell of a leak."""
    return any(each.kind == "leak" and not each.head.startswith(HEADS_OF_POINTS) for each in sentences(document))


@pytest.mark.parametrize("name", ["apollo", "mia", pytest.param("mia, given", marks=pytest.mark.long), "score"])
def test_what_only_the_interval_leaves_open_is_not_worded_like_a_null_result(
    run: Callable[[str], Path], name: str
) -> None:
    real = read_result(run(name))
    said = []
    for state in ("across", "interval just across"):
        document, _ = placed(real, [STATES[state]])
        words = [re.sub(r"[\W\d]+", " ", f"{each.head} {each.text}") for each in sentences(document)]
        other = ("Luck", "Control", "Scope")
        said.append([text for text in words if "chance" in text and not any(each in text for each in other)])
    null, open_ = said
    assert null and not set(null) & set(open_)


@pytest.mark.parametrize("name", short_without("gnq"))
def test_stars_flags_and_words_agree(
    run: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    draw_only(monkeypatch, "none")
    real = read_result(run(name))
    known = {text: state for text, state in STATES.items() if fits(real, state)}
    flags: dict[str, set[bool]] = {}
    for area in areas(real):
        low = area.row[area.names[1]]
        flags.setdefault(area.text, set()).add(area.row.get("above_chance", low is not None and low > area.chance))
    stars_agree(
        written(real, tmp_path / "real", run(name)),
        {text: each.pop() for text, each in flags.items() if len(each) == 1 and "[" in text},
    )
    shown = set[State]()
    for title, states in {"mixed": list(known.values()), **{text: [state] for text, state in known.items()}}.items():
        document, placed_in = placed(real, states)
        found = list(zip(areas(document), placed_in, strict=True))
        for area, state in found:
            assert area.row.get("above_chance", state.above) == state.above, (title, area)
        if not set(states) <= shown:
            shown |= set(placed_in)
            folder = written(document, tmp_path / title, run(name))
            stars_agree(folder, {area.text: state.above for area, state in found})
            assert read_result(folder)["verdict"] == document["verdict"]
        verdict = document["verdict"]
        levels = {text_of(Estimate(each["value"], each["low"], each["high"])): each for each in verdict["findings"]}
        for area, state in found:
            if each := levels.get(area.text):
                assert (each["level"] == LEAK) == state.above, (title, each)
                assert not (state.unsure and "auc_p_holm" in area.row) or each["level"] == UNTOLD, (title, each)
        counts = any(state.above and area.counts for area, state in found)
        assert any(each["level"] == LEAK for each in verdict["findings"]) == counts, (title, verdict)
        if title != "mixed":
            assert leaks_told(document) == counts, title


def test_what_only_an_oracle_sees_is_no_leak(run: Callable[[str], Path]) -> None:
    document, _ = placed(read_result(run("apollo")), [STATES["across"]])
    for row in document["table"]:
        if row["attack"] == "u_lira":
            row |= {"access": "oracle", "auc": 0.7, "auc_low": 0.6, "auc_high": 0.8, "auc_p_holm": 0.001}
    told = rejudged(document)
    assert any(row["above_chance"] for row in told["table"])
    assert not any(each["level"] == LEAK for each in told["verdict"]["findings"]) and not leaks_told(told)


VOID, KEPT = 0.73912, 0.61347
"""Hit rates, so odd that nothing else is printed like them."""
ENDS = {"": 0.0, "_low": -0.02, "_high": 0.02}
HITS = {"apollo": ("tpr",), "mia": ("tpr",), SCORED: ("tpr",), "tmia": ("precision", "coverage")}
"""Kind → the hit rates of its rows, which rest on a promised rate; no number of GNQ does."""


def printed(value: float) -> re.Pattern[str]:
    """Return how a number is printed somewhere: ``.739``, ``0.7391``, ``73.9 %``."""
    digits = f"{value:.5f}"[2:]
    return re.compile(rf"(?<![\d])0?\.{digits[:3]}|(?<![\d.]){digits[:2]}\.{digits[2]}")


def hits_of(row: Row, names: Iterable[str], value: float) -> Row:
    """Return hit rates of a row with their intervals."""
    return {f"{name}{end}": value + by for name in names for end, by in ENDS.items() if f"{name}{end}" in row}


def broken(document: Document, bad: str) -> Document:
    """Return a result in which the attack ``bad`` breaks a promised rate, "" for none.

    Hit rates that are void are ``VOID``, the others ``KEPT``.
    """
    changed, kind = with_controls(document), document["kind"]
    names = HITS.get(kind, ())
    for row in changed["table"] if names else ():
        off = row["attack"] == bad and row.get("unlearner") not in CONTROLS
        row |= hits_of(row, names, VOID if off else KEPT)
        if kind == "tmia":
            row |= {"precision": row["precision"], "null_models": 4}
            row |= {"null_fpr": 0.9, "null_fpr_low": 0.85, "null_fpr_high": 0.95} if off else {}
            row |= {"expected_false_positives": 1.0} if off else {}
        else:
            row |= {"found_fpr_p": 1e-9 if off else row["found_fpr_p"]}
            row |= hits_of(row, ["worth_1", "worth_10"], VOID if off else KEPT)
    for name in ("discoveries", "shadows", "budget", "predictive_values"):
        for row in changed.get(name, ()):
            off = row["attack"] == bad and row.get("unlearner") not in CONTROLS
            off = off and row.get("promised_fpr", 0.0) is not None
            row |= hits_of(row, ("tpr", "power", "ppv"), VOID if off else KEPT)
            row |= {"void": off} if "void" in row and kind == "mia" else {}
    for row in (changed.get("exposed") or ()) if kind == "mia" else ():
        row |= {"q": VOID, "void": True} if changed["judge"] == bad else {}
    return rejudged(changed)


BREAKS = {
    "apollo": "apollo", "apollo, given": "single_query", "mia": "lira", "mia, given": "lira",
    "tmia": "tmia_posterior", "tmia, given": "tmia_posterior", "score": "bold",
}  # fmt: skip
"""Run → the attack that breaks a promised rate."""


def gated(document: Document) -> Document:
    """Return a result with a gate on each hit rate of each line, none of which it can pass where it is void."""
    headline = headline_of(document)
    texts = []
    for line in headline.lines(document):
        for metric in [name for name in headline.metrics if name in HITS.get(document["kind"], ())]:
            texts += [f"{'.'.join(line.place)}.{metric}={limit}" for limit in (0.3, 0.99)]
    plan = None
    names: Any = sorted({row["attack"] for row in document["table"]}) if document["kind"] == SCORED else None
    if names is None:
        plan = plan_from(document["plan"])
    gates = gates_of(list(dict.fromkeys(texts)), headline, names if plan is None else plan)
    return document | {"gate": judge_gates(gates, headline, names if plan is None else plan, document).to_json()}


def outputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return all that is written of a run as text, but for result.json itself."""
    document, (report, summary) = read_result(folder), (folder / "ci.xml", folder / "ci.md")
    capsys.readouterr()
    assert main(["report", str(folder), "--markdown", "--junit", str(report), "--summary", str(summary)]) == 0
    said, page = capsys.readouterr().out, page_of(document)
    assert main(["report", str(folder)]) == 0
    html = (folder / "report.html").read_text(encoding="utf-8")
    html = re.sub(r"<(svg|script|style)\b.*?</\1>|data:[^\"']*|href=\"[^\"]*\"", "", html, flags=re.DOTALL)
    found = {
        **{name: text for name, text in shown_texts(folder, document).items() if name != "page"},
        "page": unescape(re.sub(r"<[^>]*>", " ", html)),
        "report": said,
        "closing lines": "\n".join(page.closing_lines(document)),
        "gate": "\n".join((capsys.readouterr().out, *GateResult.of(document).lines())),
        "junit": report.read_text(),
        "summary": summary.read_text(),
        "figures": "\n".join(file.read_text() for file in sorted((folder / "figures").glob("*.csv"))),
    }
    if document["kind"] != SCORED:
        found |= {"cell": Report(folder)._repr_html_(), "tracker": tracked(document)}
    assert junit(document, GateResult.of(document)).decode() == found["junit"]
    return found


def tracked(document: Document) -> str:
    """Return what MLflow gets of a result: numbers and tags, a line each."""
    kind, gate = kind_named(document["kind"]), GateResult.of(document)
    name = kind.main_setting(document)
    numbers = {**kind.metrics(document, name), **tracked_headline(kind, document, name).numbers, **gate.metrics()}
    return "\n".join(f"{key} {value}" for key, value in {**numbers, **gate.tags()}.items())


SAID = re.compile(r"\bvoid\b", re.IGNORECASE)
OF_ALL = ("page", "markdown", "csv", "report", "terminal", "notebook", "summary")
"""Outputs that print hit rates, or say that they are void."""
FIGURES = ("verdict", "budget", "shadows", "rates", "sweep")
"""Figures that draw hit rates, by the beginnings of their names."""


@pytest.mark.parametrize("name", short_without("mia", *NEVER_VOID))
def test_what_is_void_is_a_number_nowhere_and_nothing_else_is_hidden(
    run: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    draw_only(monkeypatch, *FIGURES)
    real, bad = read_result(run(name)), BREAKS.get(name, "")
    document, sound = gated(broken(real, bad)), broken(real, "")
    assert {row["attack"] for row in document["table"] if row.get("void")} == ({bad} if bad else set())
    assert not any(row.get("void") for row in sound["table"])
    whole = "".join(page_of(sound).csv(put(sound, tmp_path / "sound", run(name))).values())
    assert "void" not in whole
    found = outputs(put(document, tmp_path / "broken", run(name)), capsys)
    for output, text in found.items():
        pattern = re.compile(f"{VOID}") if output in ("tracker", "figures") else printed(VOID)
        assert not (seen := pattern.search(text)), (output, text[max(0, seen.start() - 200) : seen.end() + 80])
    if not bad:
        assert not any(SAID.search(text) for output, text in found.items() if output in ("csv", "summary", "gate"))
        return
    for output in OF_ALL:
        assert printed(KEPT).search(found[output]), output
        assert output == "summary" or SAID.search(found[output]), output
    assert printed(KEPT).search(found.get("tracker", f"{KEPT}"))
    assert 0 < len(printed(KEPT).findall(found["csv"])) < len(printed(KEPT).findall(whole))
    of_void = {line.place for line in headline_of(document).lines(document) if line.void}
    limits = document["gate"]["limits"]
    for limit in limits:
        place = tuple(limit["limit"].rpartition("=")[0].split("."))[:-1]
        assert (limit["value"] is None) == (place in of_void), limit
        if limit["value"] is None:
            assert limit["outcome"] == "inconclusive" and "void" in limit["reasons"][0], limit
    assert any(limit["value"] is None for limit in limits)
    if name in ("apollo", "mia", "score"):
        assert any(limit["outcome"] == "failed" for limit in limits), "a number that stands is judged"


@pytest.mark.parametrize("name", ["apollo", "mia", "tmia", "score"])
def test_a_void_hit_rate_is_not_compared(
    run: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    real, bad = read_result(run(name)), BREAKS[name]
    folders = [str(put(broken(real, which), tmp_path / f"without{which}", run(name))) for which in ("", bad)]
    capsys.readouterr()
    assert main(["compare", *folders, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rates = {row["attack"] for row in told["table"] if row["metric"] in ("tpr", "precision")}
    void = {each for each in rates if each.split(".")[-1] == bad and each.split(".")[0] not in CONTROLS}
    assert rates and not void
    assert any("void" in line for pair in told["pairs"] for line in pair["left_out"])
