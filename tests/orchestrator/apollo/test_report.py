"""The report: complete, honest, the same bytes for the same run, one file without network or script."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import sem, t

from audits.errors import BadInput
from audits.statistics.summary import cells, per_target_auc
from orchestrator.apollo.page.by_setting import area_grid
from orchestrator.apollo.page.page import PAGE
from orchestrator.apollo.page.reading import ApolloRun, read_apollo_run
from orchestrator.apollo.page.swept import panels
from orchestrator.apollo.page.verdict import search_gains, verdict
from orchestrator.apollo.plan import Audit
from orchestrator.apollo.result.judging import judge
from orchestrator.apollo.result.words import words
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.wording import lines
from orchestrator.judgement.wording import warnings as control_warnings
from orchestrator.report import writing
from orchestrator.report.best import best_rows
from orchestrator.report.grid_formats import as_html, as_markdown
from orchestrator.report.numbers import estimate, number
from orchestrator.report.result import SettingRow, main_setting
from orchestrator.report.rows import write_row
from tests.cases.apollo_page import sketched_page, whole_page
from tests.cases.apollo_result import AREA, ATTACKS, write_run
from tests.cases.runs import draw_only


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    out = tmp_path_factory.mktemp("audit")
    write_run(out)
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "verdict")  # all figures: of the whole page
        PAGE.write(out)
    return out


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    write_run(out, sweep=True, targets=3, points=70)
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "sweep_")  # the others are those of an audit
        PAGE.write(out)
    return out


class Outline(HTMLParser):
    """Collects tags that stay open, addresses and scripts of a page."""

    void = frozenset(["meta", "link", "br", "img", "hr", "input"])

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.tags = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag


OWN = ("#", "data:image/png;base64,", "data:text/csv;base64,", "figures/")
"""Addresses within a page, and of the figures' data beside it."""


def assert_closed(text):
    """Assert that a page is whole, loads nothing, and has no script but its own."""
    page = Outline(text)
    assert page.open == [] and not page.tags & {"link", "iframe", "object"}
    assert all(address.startswith(OWN) for address in page.addresses)
    assert len(re.findall("<script", text)) == 1 and "default-src 'none'" in text
    script = text[text.index("<script>") : text.index("</script>")]
    assert not re.search(r"https?:|fetch|XMLHttp|import|localStorage|\$\{run", script)


def test_page_is_one_file_without_network(audit):
    for run in (audit, sketched_page()):
        assert_closed((run / "report.html").read_text(encoding="utf-8"))


def test_page_holds_every_row_control_and_term(audit):
    text = (audit / "report.html").read_text(encoding="utf-8")
    result = json.loads((audit / "result.json").read_text())
    for row in result["table"]:
        assert f'{number(row["auc"])} <span class="ci">[{number(row["auc_low"])}, {number(row["auc_high"])}]' in text
    for term in (
        "Models retrained from scratch (retrain)",
        "Models with nothing deleted (identity)",
        "did not move",
        "Holm",
        "are expected to miss the truth by chance",
        "Promised false-alarm rates",
    ):
        assert term in text
    table = text[text.index('<section id="controls">') :]
    assert table[: table.index("</section>")].count("<tr>") == 1 + len(result["controls"])
    assert result["warnings"][0] in text and "learning_rate: 0.04" in text and "orch audit apollo plan.yaml" in text


def test_no_number_of_the_first_screen_stands_apart_from_its_name_or_its_unit(audit):
    page = (audit / "report.html").read_text(encoding="utf-8")
    screen = page[page.index('<section id="answer"') : page.index("<figure", page.index('<section id="answer"'))]
    assert "(AUC\u00a0" in screen[screen.index("<dt>Controls") :]
    assert not re.search(r"AUC [−.\d]|\d %", screen)


def test_a_result_without_some_tables_renders_without_them(audit):
    text = (audit / "report.html").read_text(encoding="utf-8")
    assert not any(f'href="#{name}"' in text for name in ("exposed", "three-way", "queries", "architectures"))
    first, *_ = PAGE.closing_lines(json.loads((audit / "result.json").read_text()))
    assert first.startswith("Verdict: Deleted images can still be recognised: Gradient ascent (AUC ")
    assert "promised FDR" not in PAGE.markdown(audit)


def test_text_from_the_run_is_escaped(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "draw", lambda *_: {})  # figures show neither a run's name nor its warnings
    result = write_run(tmp_path, targets=2, points=100)
    result["warnings"] = ["<script>alert(1)</script>"]
    result["name"] = "a<b"
    (tmp_path / "result.json").write_text(json.dumps(result))
    text = PAGE.write(tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in text and "&lt;script&gt;" in text and "a&lt;b" in text


@pytest.mark.parametrize("figures", [["auc"], pytest.param([""], marks=pytest.mark.long, id="all")])
def test_same_run_gives_the_same_bytes(tmp_path, monkeypatch, figures):
    draw_only(monkeypatch, *figures)
    for place in ("first", "again"):
        write_run(tmp_path / place, targets=2, points=100)
        PAGE.write(tmp_path / place)
    first, again = (
        {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        for place in (tmp_path / "first", tmp_path / "again")
    )
    assert first.keys() == again.keys() and any(name.suffix == ".svg" for name in first)
    assert [name for name in first if first[name] != again[name]] == []


FIGURES = {"verdict", "auc", "roc", "roc_log", "privacy_utility", "radius_heat_map", "paper_rule", "tau_curves"}
"""Those of the first form of results."""


SWEPT = {"sweep_apollo", "sweep_apollo_offline"}
WHOLE = FIGURES | SWEPT | {"budget", "transfer", "three_way", "setting_utility"}
DRAWN = [("sweep", SWEPT), pytest.param("whole", WHOLE, marks=pytest.mark.long)]
"""Run → its figures; in short those that a test draws anyway."""


def test_a_whole_run_has_every_figure_with_its_numbers():
    folder = sketched_page() / "figures"
    assert {path.stem for path in folder.iterdir()} == WHOLE
    for name in WHOLE:
        head, *rows = (folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert head == "panel,series,mark,x,y,value" and rows


@pytest.mark.parametrize(("run", "figures"), DRAWN)
def test_figures_come_as_svg_and_png_without_dates(sweep, run, figures):
    folder = (sweep if run == "sweep" else whole_page()) / "figures"
    assert {path.stem for path in folder.iterdir()} == figures
    for name in figures:
        svg = (folder / f"{name}.svg").read_text()
        assert "<dc:date>" not in svg and "fonts.googleapis" not in svg
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        head, *rows = (folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert head == "panel,series,mark,x,y,value" and rows


@pytest.mark.parametrize(("run", "drawn"), DRAWN)
def test_inline_figures_follow_the_colours_of_the_page_and_share_no_ids_but_glyphs(sweep, run, drawn):
    text = ((sweep if run == "sweep" else whole_page()) / "report.html").read_text(encoding="utf-8")
    figures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(figures) == len(drawn) and all("var(--ink)" in svg and "#1f2328" not in svg for svg in figures)
    clips = [set(re.findall(r'<clipPath id="([^"]+)"', svg)) for svg in figures]
    assert sum(map(len, clips)) == len(set().union(*clips)) > 0


def test_sweep_panels_hold_the_plan_value_and_every_trial(sweep):
    run = read_apollo_run(sweep)
    swept = {panel.axis: panel for panel in panels(run)}
    assert swept["β/α"].values == (1.0, 2.0, 4.0, 8.0, 16.0)
    assert swept["β/α"].settings[2] == run.main_setting == "base"
    assert swept["shadow models m"].values == (4.0, 8.0, 16.0)
    assert swept["steps T"].values == (1.0, 3.0, 5.0, 10.0)
    text = (sweep / "report.html").read_text(encoding="utf-8")
    assert "orch sweep apollo-ablation plan.yaml" in text and "epsilon=0.05" in text


def changed(out, unlearner, **fields):
    run = read_apollo_run(out)
    result = run.result.document()
    table = [row | fields if row["unlearner"] == unlearner else row for row in result["table"]]
    return ApolloRun(judge(ApolloRun.of(result | {"table": table}).result), run.scores)


def test_verdict_alarms_when_a_control_fails(audit):
    def states(run):
        return {each.name: each.state for each in run.result.verdict.controls}

    plain = read_apollo_run(audit)
    assert [sentence.kind for sentence in verdict(plain)] == ["leak", "leak", "leak", "plain"]
    assert set(states(plain).values()) == {"held"} and not control_warnings(plain.result.controls)
    broken = changed(audit, "retrain", auc_p=0.0005, auc=0.4)
    assert states(broken)["retrain"] == "failed"
    (line,) = control_warnings(broken.result.controls)
    assert line.startswith("control failed: retrain: ") and "AUC .40" in line
    lucky = plain.result.document()
    first = next(row for row in lucky["table"] if row["unlearner"] == "retrain")
    first |= {"auc_p": 0.04, "auc": 0.56, "auc_low": 0.51}  # one of many, as luck makes them
    lucky_run = judge(ApolloRun.of(lucky).result)
    assert lucky_run.verdict.level == "leak" and not control_warnings(lucky_run.controls)
    powerless = changed(audit, "identity", auc_p_holm=1.0, above_chance=False)
    assert states(powerless)["identity"] == "failed" and not control_warnings(powerless.result.controls)


def test_verdict_names_null_attacks_and_broken_promises(audit):
    null = verdict(changed(audit, "scrub", auc_p_holm=1.0, above_chance=False))
    sentence = next(part for part in null if part.head == "SCRUB")
    assert sentence.kind == "plain" and "No attack is above chance" in sentence.text
    assert all(name in sentence.text for name in ("Apollo", "LiRA", "label gap"))
    late = changed(audit, "scrub", found_fpr=0.3, found_fpr_low=0.2, found_fpr_high=0.4, found_fpr_p=1e-6)
    first, *_ = verdict(late)
    assert first.kind == "bad" and "Apollo against SCRUB (found .300" in first.text
    (line,) = control_warnings(late.result.controls)
    assert line.startswith("control failed: promised false-alarm rates: ") and "Apollo" in line
    early = changed(
        audit,
        "scrub",
        found_fpr=0.001,
        found_fpr_low=0.0,
        found_fpr_high=0.002,
        found_fpr_p=1.0,
        found_fpr_below_p=1e-6,
    )
    (careful,) = (part for part in verdict(early) if part.head.startswith("Found rates below"))
    assert careful.kind == "plain" and "7 of 35" in careful.text and "SCRUB × Apollo" in careful.text
    assert {each.state for each in early.result.verdict.controls} == {"held"}


def test_search_gains_are_paired_over_targets(audit):
    run = read_apollo_run(audit)
    gains = {(gain.unlearner, gain.attack, gain.reference): gain.difference for gain in search_gains(run)}
    area = {(row.unlearner, row.attack): row.auc.value for row in run.rows()}
    difference = gains["identity", "apollo", "single_query"]
    assert difference.mean == pytest.approx(area["identity", "apollo"] - area["identity", "single_query"])
    assert difference.low < difference.mean < difference.high and difference.targets == 8


def area(row, name):
    return estimate(Estimate(*(row[f"{name}{end}"] for end in Estimate.SUFFIXES)))


def test_terminal_table_fits_one_hundred_columns_uncut(audit):
    result = json.loads((audit / "result.json").read_text())
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 – closed with the process
    console.print(PAGE.tables(result)[-1])
    text = console.export_text()
    assert "…" not in text and max(map(len, text.splitlines())) <= 100
    for row in result["table"]:
        assert area(row, "auc") in text and area(row, "tpr") in text
    assert text.count("*") == sum(row["above_chance"] for row in result["table"]) + 1
    assert all(text.count(name) >= len(AREA) for name in ("Apollo offline", "single query", "LiRA"))
    assert len(ATTACKS) == 7


def test_unfinished_or_foreign_runs_are_refused_in_one_line(tmp_path):
    with pytest.raises(BadInput, match=r"not a finished run: result\.json is missing"):
        PAGE.write(tmp_path)
    result = write_run(tmp_path, targets=2, points=100)
    (tmp_path / "result.json").write_text(json.dumps(result | {"schema": "other/9"}))
    with pytest.raises(BadInput, match="schema 'other/9'"):
        PAGE.write(tmp_path)


def test_markdown_of_a_sweep_pairs_settings_over_targets(sweep):
    run, text = read_apollo_run(sweep), PAGE.markdown(sweep)
    areas = {
        (cell.setting, cell.unlearner): per_target_auc(cell) for cell in cells(run.scores) if cell.attack == "apollo"
    }
    other = next(name for name in run.settings if name != "base")
    changes = [
        np.subtract(list(areas[other, name].values()), list(areas["base", name].values())) for name in run.unlearners
    ]
    part = text.split("**AUC of Apollo minus that at base")[1]
    line = next(line for line in part.splitlines() if line.startswith(f"| {other} |"))
    for shown, change in zip(line.split("|")[2:], changes, strict=False):
        half = t.ppf(0.975, len(change) - 1) * sem(change)
        told = re.findall(r"[-+]?\.\d{3}", shown.replace("−", "-"))
        assert list(map(float, told)) == pytest.approx(
            [change.mean(), change.mean() - half, change.mean() + half], abs=6e-4
        )
    assert "minus that of random directions" in text


def test_the_best_setting_is_marked_and_told_beside_what_the_best_would_reach_by_chance(sweep):
    run, document = read_apollo_run(sweep), json.loads((sweep / "result.json").read_text())
    assert "†" not in PAGE.markdown(sweep), "an older result marks none"
    best = best_rows(cells(run.scores), Audit(permutations=50), 0, None)
    with_best = ApolloRun.of(document | {"best": [write_row(row) for row in best]}, run.scores)
    found = next(row for row in best if (row.unlearner, row.attack) == ("scrub", "apollo"))
    grid = area_grid(with_best, "apollo")
    place = [column.name for column in grid.columns].index(f"{words('scrub')} [95\N{NO-BREAK SPACE}%]")
    marked = [str(line[0]) for line in grid.lines if line[place].mark.endswith("†")]
    assert (
        marked == [found.setting] and len(best) == 2 * len(AREA) - 2
    )  # both searches; against retrain nothing changes
    told = (
        f"† {words('scrub')}: best of 13 settings: {found.setting}, AUC {number(found.auc)}. If nothing leaked, "
        f"the best of 13 would still reach {number(found.null_high)} (95\N{NO-BREAK SPACE}%): p"
    )
    assert any(line.startswith(told) for line in grid.notes) and "`orch tune apollo`" in grid.notes[-1]
    assert told in as_markdown(grid) and told in as_html(grid)


def test_the_main_setting_is_the_plans_own_but_for_what_all_settings_change():
    plan = {"audit": {"attacks": ["a", "b"], "search": {"steps": 5}}}
    settings = [
        SettingRow(setting=f"T={steps}", overrides={"audit.search.steps": steps, "audit.attacks": ["a"]})
        for steps in (1, 5)
    ]
    assert main_setting(plan, settings) == "T=5"


def test_markdown_holds_every_row_of_the_main_setting_and_every_setting(sweep):
    result = json.loads((sweep / "result.json").read_text())
    text = PAGE.markdown(sweep)
    shown = [row for row in result["table"] if row["setting"] == "base"]
    for row in shown:
        cells = (words(row["access"]), words(row["unlearner"]), words(row["attack"]), area(row, "auc"))
        assert f"\n| {' | '.join(cells)}" in text
    assert text.rindex("| Labels only |") < text.index("| Posteriors |")
    assert all(f"\n| {entry['setting']} |" in text for entry in result["settings"])


def test_of_several_settings_titles_verdict_and_page_name_the_one_that_they_are_about(audit, sweep):
    document = json.loads((sweep / "result.json").read_text())
    count = len(document["settings"])
    trials = [{"setting": entry["setting"], "repeats": None} for entry in document["settings"]]
    search = {"trials": [*trials, {"setting": "stopped", "repeats": None}], "metric": ["scrub.apollo.auc"]}
    without_own = {"plan": {**document["plan"], "audit": {**document["plan"]["audit"], "search": {}}}}
    rest = [entry for entry in document["settings"] if entry["setting"] != "base"]
    cases = {
        "base (the plan’s own setting)": document,
        f"{rest[0]['setting']} (the first of {count - 1} whole trials, as the plan’s own is none of them)": (
            document | without_own | {"settings": rest, "search": search}
        ),
        f"{rest[0]['setting']} (the first of {count - 1} settings, as the plan’s own is none of them)": (
            document | without_own | {"settings": rest}
        ),
    }
    for about, found in cases.items():
        setting = about.partition(" (")[0]
        told = ApolloRun(judge(ApolloRun.of(found).result))
        assert told.result.about == told.result.verdict.about == about and told.main_setting == setting
        assert PAGE.terminal_grids(told)[-1].title.startswith(f"{setting}: attacks on unlearned models")
        assert lines(told.result.verdict)[0].startswith(f"Verdict on {about}: ")
    page = (sweep / "report.html").read_text()
    first = page[page.index('id="answer"') : page.index('id="verdict"')]
    assert "<dt>Setting</dt><dd>base (the plan’s own setting)" in first and "<h2>base: attacks on each" in page
    alone = ApolloRun.of(json.loads((audit / "result.json").read_text()))
    assert alone.result.about == "" and PAGE.terminal_grids(alone)[0].title.startswith("Attacks on unlearned models")
