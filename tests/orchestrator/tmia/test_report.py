"""The report of a TMIA audit: it says what the cells say, nulls and 0/0 included, on one safe page."""

import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy.special import ndtri

from audits.errors import BadInput
from orchestrator.judgement.rows import FAILED, HELD, MISSING
from orchestrator.judgement.wording import warnings
from orchestrator.report.grid_formats import as_markdown
from orchestrator.report.numbers import bounds, number
from orchestrator.tmia.page import curves, figures, tables
from orchestrator.tmia.page.numbers import rate
from orchestrator.tmia.page.page import PAGE
from orchestrator.tmia.page.reading import read_tmia_run
from orchestrator.tmia.page.seeds import seeds_grids
from orchestrator.tmia.page.verdict import verdict
from orchestrator.tmia.result.judging import detectable, judge
from orchestrator.tmia.result.metrics import metrics
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.result.words import words
from tests.cases.kept import finished
from tests.cases.sketched import sketch
from tests.orchestrator.apollo.test_report import assert_closed
from tests.orchestrator.tmia.drawn_result import SELECTORS, write_tmia_run

MODES = {"I": {}, "II": {"audit.mode": "II", "signal": 0.0, "data.name": "digits"}}


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    out = tmp_path_factory.mktemp("membership")
    write_tmia_run(out, MODES)
    result = json.loads((out / "result.json").read_text())
    result["warnings"].append("<script>alert(1)</script>")
    (out / "result.json").write_text(json.dumps(result))
    points = {point["point_id"] for point in result["exposed"]}
    with pytest.MonkeyPatch.context() as patch:
        sketch(patch)
        PAGE.write(out, {point: np.full((4, 4), 0.5) for point in points})
    return out


@pytest.fixture(scope="module")
def run(audit):
    return read_tmia_run(audit)


@pytest.fixture(scope="module")
def page(audit):
    return (audit / "report.html").read_text(encoding="utf-8")


def changed(run, setting=None, attack=None, **fields):
    """Return the run with other values in the cells of a setting and attack (None: all of them)."""

    def own(row):
        return setting in (None, row["setting"]) and attack in (None, row["attack"])

    return with_fields(run, table=[row | fields if own(row) else row for row in run.result.document()["table"]])


def with_fields(run, **fields):
    """Return the run with other fields in its result, which is judged by them."""
    changed = TmiaRun.of({**run.result.document(), **fields}, run.scores)
    return TmiaRun(judge(changed.result), run.scores)


def sentence(run, start):
    return next(part for part in verdict(run) if part.head.startswith(start))


def by_attack(run, setting):
    """Return what is said of each attack of the verdict in a setting, by what it goes by."""
    start = f"Attack {run.mode(setting)} ({setting}), "
    return {part.head.removeprefix(start): part for part in verdict(run) if part.head.startswith(start)}


def test_the_page_is_one_closed_file_without_network(page):
    for text in (page, (finished("tmia") / "report.html").read_text("utf-8")):
        assert_closed(text)
    assert "&lt;script&gt;alert(1)" in page


def test_the_page_holds_every_cell_and_its_figures(audit, run, page):
    for row in run.result.table:
        assert f'{number(row.precision.value)} <span class="ci">{bounds(row.precision)}</span>' in page
    drawn = {path.stem for path in (audit / "figures").glob("*.svg")}
    single = {"rates_0", "rates_1", "control_0", "control_1", "confidence", "loss", "reconstruction"}
    assert drawn == single | {"verdict"} and all(f'id="figure-{name}"' in page for name in drawn)
    assert "orch audit tmia plan.yaml" in page and "0123456789ab" in page and "label_gap is left out" in page


def test_the_page_says_how_many_models_of_each_group_there_are(page):
    assert "6 targets; 39 reference models; 4 null models; 4 over-fitted models; 60 candidates" in page


def test_thumbnails_stand_only_beside_points_of_the_plans_own_data(run, page):
    own = [point for point in run.result.exposed if point.setting == "I"]
    clear = max(own, key=lambda point: point.hits)
    assert f'alt="point {clear.point_id}" src="data:image/png' in page
    listed = page[page.index('id="exposed"') : page.index('id="settings"')]
    assert "<h3>II:" in listed and "<img" not in listed[listed.index("<h3>II:") :]
    assert listed.count("<img") == min(12, len(own))


def test_the_verdict_names_what_is_found_and_from_what(run):
    said = sentence(run, "Attack I (I)")
    row = run.cell("I", "kmeans", "tmia_distance")
    assert (
        row.above_chance
        and said.kind == "leak"
        and "recognised from predicted classes alone and from confidences." in said.text
    )
    calls = row.true_positives + row.false_positives
    labels, posteriors = by_attack(run, "I").items()
    assert (labels[0], posteriors[0]) == (
        "from predicted classes alone (TMIA, distance)",
        "from confidences (TMIA, posteriors)",
    )
    assert labels[1].kind == "leak" and f"{row.true_positives} of {calls} “member” calls are right" in labels[1].text
    assert rate(row.precision) in labels[1].text and rate(row.coverage) in labels[1].text
    assert "without a statistic" not in by_attack(changed(run, failed=0), "I")[labels[0]].text
    assert "not called: 2." in by_attack(changed(run, attack="tmia_distance", failed=2), "I")[labels[0]].text


def test_a_null_result_is_called_one_with_the_power_it_had(run):
    fields = {"precision": 0.5, "precision_low": 0.38, "precision_high": 0.61, "auc_low": 0.47}
    null = changed(run, "II", true_positives=20, false_positives=20, **fields)
    said, row = sentence(null, "Attack II"), null.cell("II", "kmeans", "tmia_posterior")
    assert said.kind == "plain" and "a null result" in said.text
    found = detectable(row, run.level)
    assert math.isclose(found, row.chance + 0.12 * (1 + ndtri(0.8) / ndtri(0.975)))
    told = by_attack(null, "II")["from confidences (TMIA, posteriors)"]
    assert f"a precision below {number(found)} could have been missed; above .610 is ruled out" in told.text
    assert f"With {row.pairs} pairs" in told.text and "point the right way" not in told.text
    leaning = by_attack(changed(run, "II", **fields | {"auc_low": 0.52}), "II")
    assert all("point the right way" in part.text for part in leaning.values())


def test_nobody_called_is_undefined_and_not_zero(run):
    nothing = dict.fromkeys(("precision", "precision_low", "precision_high"))
    empty = changed(run, "I", true_positives=0, false_positives=0, **nothing)
    said = sentence(empty, "Attack I (I)")
    assert said.kind == "plain"
    assert all("precision is undefined (0/0)" in part.text for part in by_attack(empty, "I").values())
    assert "Precision undefined (0/0)" in sentence(empty, "Other attacks").text
    assert "| undefined |" in markdown(empty)
    assert figures.precision_and_coverage(empty, "I") is not None


def test_a_selection_of_nobody_is_reported(run):
    rates = dict.fromkeys(f"{name}{end}" for name in ("precision", "coverage", "fpr") for end in ("", "_low", "_high"))
    null = dict.fromkeys(("null_fpr", "null_fpr_low", "null_fpr_high"))
    counts = dict.fromkeys(("candidates", "true_positives", "false_positives", "members", "non_members"), 0)
    nobody = changed(run, **rates, **null, **counts, auc=None, auc_low=None, auc_high=None)
    assert all("No pair was attacked" in part.text for part in by_attack(nobody, "I").values())
    assert {each.state for each in nobody.result.controls if each.name == "null models"} == {MISSING}
    assert figures.precision_and_coverage(nobody, "I") is None


def states(run, name):
    """Return how a control came out, setting by setting; of a positive one by the attack that a verdict rests on."""
    return {each.setting: each.state for each in reversed(run.result.controls) if each.name == name}


def test_the_control_alarms_where_null_models_are_called_members(run):
    assert states(changed(run, null_fpr=0.05, null_fpr_low=0.01), "null models") == {"I": HELD, "II": HELD}
    broken = changed(run, "I", attack="tmia_distance", null_fpr=0.2, null_fpr_low=0.18)
    assert states(broken, "null models") == {"I": FAILED, "II": HELD}
    (line,) = warnings(broken.result.controls)
    assert "setting I" in line and "TMIA, distance (20.0" in line
    assert figures.false_positive_rates(broken, "I") is not None
    unpromised = changed(run, attack="yeom", null_fpr=0.5, null_fpr_low=0.4)
    assert set(states(unpromised, "null models").values()) == {HELD}  # Yeom's threshold promises no level
    assert set(states(changed(run, null_models=0), "null models").values()) == {MISSING}


def test_the_positive_control_is_told_and_a_blind_attack_with_it(run, page):
    assert {each.state for each in run.result.controls if each.name == "over-fitted models"} == {HELD}
    assert 'id="overfitted"' in page and "Would a leak be seen?" in page
    rows = run.result.document()["overfitted"]
    weak = [{**row, "auc_low": 0.4} if row["attack"] == "yeom" else row for row in rows]
    some = with_fields(run, overfitted=weak)
    blind = {each.attack for each in some.result.controls if each.state == FAILED}
    assert blind == {"yeom"} and {each.state for each in some.result.verdict.controls} == {HELD}
    (line,) = (line for line in markdown(some).splitlines() if "| failed |" in line and "| I |" in line)
    assert "Yeom, loss" in line
    there = [{**row, "auc_low": 0.4} if row["setting"] == "II" else row for row in rows]
    (control,) = (
        each for each in with_fields(run, overfitted=there).result.verdict.controls if each.protects == "null results"
    )
    assert control.state == FAILED and control.why.endswith("Failed in II alone.")
    assert set(states(with_fields(run, overfitted=[]), "over-fitted models").values()) == {MISSING}


def test_a_broken_level_voids_precision_coverage_and_recognised_points(run):
    late = changed(run, attack="tmia_distance", null_fpr=0.2, null_fpr_low=0.18)
    void = [row for row in late.result.table if row.void]
    assert {row.attack for row in void} == {"tmia_distance"} and not any(row.void for row in run.result.table)
    document = late.result.document()
    (said,) = (line for line in PAGE.closing_lines(document) if "void" in line)
    assert said.startswith(
        "Control failed: models that saw none of the candidates (null models). Called members more often than"
    )
    assert not any("void" in line for line in PAGE.closing_lines(run.result.document()))
    told = by_attack(late, "I")["from predicted classes alone (TMIA, distance)"]
    assert told.text.startswith("Void") and "from predicted classes alone" not in sentence(late, "Attack I (I)").text
    lines = [line for line in markdown(late).splitlines() if "| TMIA, distance | labels |" in line]
    assert lines and all(line.split(" | ")[4:6] == ["void", "void"] for line in lines)
    points = [grid for grid in tables.recognised_grids(late, {}) if grid.title.startswith("I: TMIA, distance")]
    assert points and all(line[-1].text == "void" for grid in points for line in grid.lines)
    lost = metrics(run.result.document(), "I").keys() - metrics(document, "I").keys()
    assert lost and {name.split(".")[-1].partition("_")[0] for name in lost} == {"precision", "coverage"}


def test_one_cell_that_luck_explains_is_no_alarm_anywhere(run):
    held = changed(run, null_fpr=0.04, null_fpr_low=0.01)
    table = held.result.document()["table"]
    first = next(row for row in table if row["attack"] == "tmia_distance" and row["null_models"])
    first |= {"null_fpr": 0.09, "null_fpr_low": 0.055}  # its interval lies above β = .05
    lucky = with_fields(held, table=table)
    (cell,) = (row for row in lucky.result.table if row.null_fpr.value == 0.09)
    assert cell.null_fpr_p < 0.025 < 0.05 < cell.null_fpr_p_holm and not cell.null_fpr_off
    assert states(lucky, "null models")[cell.setting] == HELD
    assert warnings(lucky.result.controls) == []


def test_selection_is_called_a_gain_only_beyond_both_intervals(run):
    base = {"precision_low": 0.5, "precision_high": 0.7}
    apart = changed(changed(run, **base), "I")
    rows = apart.result.document()["table"]
    table = [row | ({"precision_low": 0.75} if row["selection"] == "kmeans" else {}) for row in rows]
    assert "No gain is shown, since intervals overlap" in sentence(apart, "Gain by selection (I)").text
    said = sentence(with_fields(run, table=table), "Gain by selection (I)")
    assert "More precise, with disjoint intervals: k-means distance" in said.text


def test_models_that_are_not_normally_fitted_are_named(run):
    assert sentence(run, "Fit").kind == "good" and "3.0 points" in sentence(run, "Fit").text
    rows = run.result.document()["fit"]
    fit = [row | {"gap": 0.15, "flag": "overfitted"} if row["setting"] == "II" else row for row in rows]
    said = sentence(with_fields(run, fit=fit), "Fit")
    assert said.kind == "bad" and "more than 5 points: II (asked side) 15.0." in said.text
    reference = [row if row["group"] == "reference" else {**row, "gap": 0.03, "flag": ""} for row in fit]
    assert sentence(with_fields(run, fit=reference), "Fit").kind == "good"


def test_drawn_confidences_are_those_of_the_scores(audit, run):
    rows = pq.read_table(audit / "scores.parquet").to_pylist()
    own = [
        math.exp(row["statistic"])
        for row in rows
        if (row["setting"], row["attack"], row["group"]) == ("I", "tmia_posterior", "target")
        and row["member"]
        and row["q_kmeans"]
    ]
    figure = figures.confidences(run)
    panel = figure.axes[1]
    assert panel.get_title() == words("kmeans") and len(figure.axes) == 2 * len(SELECTORS)
    lines = {line.get_label(): line.get_xdata() for line in panel.get_lines()}
    assert set(lines) == {"trained on them", "did not"}
    assert lines["trained on them"][len(figures.QUANTILES) // 2] == pytest.approx(np.median(own))
    assert len(figures.losses(run).axes[1].get_lines()) == 3


def sweep_of(run, settings):
    """Return a run whose settings are those named, each with the cells of setting I."""
    entries = [{"setting": name, "overrides": changes, "mode": "II"} for name, changes in settings.items()]
    own = {field: [row for row in run.result.document()[field] if row["setting"] == "I"] for field in ("table", "fit")}
    rows = {field: [row | {"setting": name} for name in settings for row in found] for field, found in own.items()}
    return with_fields(run, name="tmia-sweep", settings=entries, **rows)


def test_frozen_layers_draw_a_line_for_each_student_domain(run):
    names = {f"{domain}/n_frozen={count}": domain for domain in ("near", "far") for count in (0, 1, 2)}
    found = sweep_of(
        run,
        {
            name: {"audit.mode": "II", "transfer.classes": domain, "transfer.n_frozen": int(name[-1])}
            for name, domain in names.items()
        },
    )
    lines = curves.frozen_lines(found)
    assert lines["near"] == {0.0: "near/n_frozen=0", 1.0: "near/n_frozen=1", 2.0: "near/n_frozen=2"}
    assert set(lines) == {"near", "far"} and curves.sweep_curves(found) is None
    figure = curves.frozen_layers(found)
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == ["precision", "coverage", "|Q|"]
    assert "above chance in 6 of 6 settings" in sentence(found, "All settings").text
    assert curves.frozen_lines(run) == {} and curves.frozen_layers(run) is None


def test_swept_values_stand_along_their_axis_with_the_plans_own(run):
    alphas = {f"alpha={value:g}": {"audit.alpha": {"quantile": value}} for value in (0.8, 0.95, 0.99)}
    (panel,) = curves.swept(sweep_of(run, alphas))
    assert (panel.values, panel.settings) == ((0.8, 0.95, 0.99), tuple(alphas))
    assert [axes.get_xlabel() for axes in curves.sweep_curves(sweep_of(run, alphas)).axes][-1].startswith("quantile")
    betas = {f"beta={value:g}": {"audit.beta": value} for value in (0.1, 0.2)}
    (panel,) = curves.swept(sweep_of(run, betas))
    assert (panel.values, panel.settings) == ((0.1, 0.2), tuple(betas))  # the plan's .05 is no setting of this sweep
    assert curves.swept(run) == []


def test_the_terminal_tables_fit_one_hundred_columns_uncut(run):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 – closed with the process
    for table in PAGE.tables(run.result.document()):
        console.print(table)
    text = console.export_text()
    assert "…" not in text and max(map(len, text.splitlines())) <= 100
    assert all(rate(row.precision) in text for row in run.result.table)
    assert all(name in text for name in ("By setting", "I: attack mode I", "II: attack mode II", "null FPR"))


def markdown(run):
    return "\n\n".join(map(as_markdown, tables.all_grids(run)))


def test_markdown_holds_every_cell_and_keeps_its_columns(run):
    text = markdown(run)
    for row in run.result.table:
        assert f"| {words(row.attack)} | {row.access} | {row.candidates} | {rate(row.precision)} |" in text
    bars = [line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("| selection | attack")]
    rows = [line.count("|") for line in text.splitlines() if line.startswith("| random sample |")]
    assert set(bars) == set(rows) == {12}


def test_unfinished_and_foreign_runs_are_refused_in_one_line(tmp_path, audit):
    with pytest.raises(BadInput, match=r"not a finished run: result\.json is missing"):
        PAGE.write(tmp_path)
    (tmp_path / "scores.parquet").write_bytes((audit / "scores.parquet").read_bytes())
    result = json.loads((audit / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps(result | {"kind": "apollo"}))
    with pytest.raises(BadInput, match="of kind 'apollo'"):
        PAGE.write(tmp_path)


def test_a_sweep_over_seeds_ends_in_means_over_them(run):
    first = [cell for cell in run.result.document()["table"] if cell["setting"] == "I"]
    cell = next(cell for cell in first if cell["precision"] is not None and cell["attack"] == "tmia_distance")
    place = (cell["selection"], cell["attack"])
    seeds = {"seed=1": 0.5, "seed=2": 0.6, "seed=3": 0.7}
    table = [{**cell, "setting": name, "precision": value} for name, value in seeds.items()]
    table += [{**cell, "setting": name, "attack": "gmia1", "precision": None} for name in seeds]
    settings = [{"setting": name, "overrides": {"seed": int(name[-1])}, "mode": "I"} for name in seeds]
    (grid,) = seeds_grids(with_fields(run, table=table, settings=settings))
    assert grid.title == "Means over 3 seeds [95 % over seeds]"
    assert [row[:2] for row in grid.texts] == [[words(place[0]), words(place[1])]]  # 0/0 at a seed: left out
    assert grid.texts[0][3:5] == [".600 [.352, .848]", ".500–.700"]  # ± 4.303 · .1 / √3
    other = [{**settings[0], "overrides": {"seed": 1, "audit.beta": 0.1}}, *settings[1:]]
    assert seeds_grids(with_fields(run, table=table, settings=other)) == []
    assert seeds_grids(run) == []


def test_seeds_of_several_settings_have_means_of_their_own(run):
    cell = next(cell for cell in run.result.document()["table"] if cell["precision"] is not None)
    found = {"a=1/seed=1": 0.5, "a=1/seed=2": 0.6, "a=2/seed=1": 0.7, "a=2/seed=2": 0.9}
    table = [{**cell, "setting": name, "precision": value} for name, value in found.items()]
    settings = [
        {"setting": name, "overrides": {"a": int(name[2]), "seed": int(name[-1])}, "mode": "I"} for name in found
    ]
    grids = seeds_grids(with_fields(run, table=table, settings=settings))
    assert [grid.title.split(":")[0] for grid in grids] == ["a=1", "a=2"]
    assert [grid.texts[0][3].split(" ")[0] for grid in grids] == [".550", ".800"]
