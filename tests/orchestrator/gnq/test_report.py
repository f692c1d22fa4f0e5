"""The report of a GNQ audit: it says what the rows say, nulls and missing arms included, on one safe page."""

import json

import numpy as np
import pytest
from matplotlib.text import Text
from rich.console import Console

from audits.errors import BadInput
from orchestrator.cli.main import main
from orchestrator.gnq.page import figures, inversion, predictions, sweep_figures, sweeps, tables
from orchestrator.gnq.page.frontier import frontier
from orchestrator.gnq.page.numbers import change_entry, headline
from orchestrator.gnq.page.page import PAGE
from orchestrator.gnq.page.reading import GnqRun
from orchestrator.gnq.page.verdict import REMOVAL
from orchestrator.gnq.result.words import arm_words
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.wording import DASH
from orchestrator.report.grid_formats import as_markdown
from orchestrator.report.numbers import estimate, number
from tests.cases.kept import finished
from tests.cases.sketched import sketch
from tests.orchestrator.apollo.test_report import Outline, assert_closed
from tests.orchestrator.gnq.drawn_result import ARMS, write_gnq_run
from tests.orchestrator.gnq.test_verdict import GNQ, changed, sentence, with_rows

FEWER = {
    "one arm": (("none",), 3),
    "no removal": (("none", "dp-8"), 3),
    "no DP-SGD": (("none", GNQ, "random-0.2"), 3),
    "one pool": (tuple(ARMS), 1),
}


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    out = tmp_path_factory.mktemp("gnq")
    result = write_gnq_run(out)
    result["warnings"].append("<script>alert(1)</script>")
    (out / "result.json").write_text(json.dumps(result))
    with pytest.MonkeyPatch.context() as patch:
        sketch(patch)
        PAGE.write(out, {result["points"][0]["point_id"]: np.full((4, 4), 0.5)})
    return out


@pytest.fixture(scope="module")
def run(audit):
    return GnqRun.of(json.loads((audit / "result.json").read_text()))


@pytest.fixture(scope="module")
def text(audit):
    return (audit / "report.html").read_text(encoding="utf-8")


def markdown(document):
    return "\n\n".join(map(as_markdown, tables.all_grids(GnqRun.of(document))))


def interval_of(row, *keys):
    return estimate(Estimate(*(row[key] for key in keys)))


def in_page(found):
    """Return an estimate as a page has it."""
    number, _, ends = estimate(found).partition(" ")
    return f'<td>{number} <span class="ci">{ends}</span></td>' if ends else f"<td>{number}</td>"


def test_the_page_is_one_closed_file_without_network(text):
    for page in (text, (finished("gnq") / "report.html").read_text("utf-8")):
        assert_closed(page)
    assert "&lt;script&gt;alert(1)" in text


def test_the_page_holds_every_cell_its_figures_and_the_plan(audit, run, text):
    for row in run.result.table:
        assert in_page(row.auc) + in_page(row.two_sided) in text
    drawn = {path.stem for path in (audit / "figures").glob("*.svg")}
    assert drawn == {"verdict", "frontier", "bins", "correlations", "traces"}
    assert all(f'id="figure-{name}"' in text for name in drawn)
    assert "orch audit gnq plan.yaml" in text and "0123456789ab" in text and "delta is 0.0001" in text
    order = [text.index(f'id="{name}"') for name in ("verdict", "arms", "comparisons", "removed", "onion", "by-bin")]
    assert order == sorted(order) and REMOVAL in text


def test_exposed_points_stand_with_their_numbers_and_the_bits_with_their_caveat(run, text):
    listed = text[text.index('<section id="points"') :]
    first = run.result.points[0]
    assert f'alt="point {first.point_id}" src="data:image/png' in listed and listed.count("<img") == 1
    assert f"<td>{first.rank} of {first.of}</td><td>{first.gnq_log:.3g}</td>" in listed
    assert listed.count("ankle boot") == 24 and "a bound under a Gaussian model. They are no guarantee" in listed


def test_other_comparisons_stand_beside_what_they_say_of_null_models(run):
    arm = next(row for row in run.result.arms if row.arm == GNQ)
    grid = tables.way_grid(run, "base", arm)
    lines = {(row[0], row[1], row[2]): row for row in grid.texts}
    assert len(lines) == 6
    paper = lines["kept against all non-members", "naive shadows", "published model"]
    place = ("base", GNQ, "kept_unfiltered", "lira", ("naive",))
    assert paper[3:5] == [estimate(run.cell(*place).auc), estimate(run.cell(*place, "null").auc)]
    assert "paper’s implicit comparison" in paper[5]
    assert lines["kept, same rule on both sides", "naive shadows", "before removal"][4] == DASH
    assert len(tables.way_grid(run, "base", run.undefended("base")).lines) == 1
    only = with_rows(run, table=[row for row in run.result.document()["table"] if row["attack"] == "loss"])
    assert [row[1] for row in tables.way_grid(only, "base", arm).texts] == ["no shadows"] * 4


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.long if case.startswith("no ") else ()) for case in FEWER]
)
def test_runs_with_fewer_arms_or_one_pool_render_as_well(case, tmp_path, monkeypatch):
    arms, pools = FEWER[case]
    result = write_gnq_run(tmp_path, arms=arms, pools=pools)
    sketch(monkeypatch)
    text = PAGE.write(tmp_path).read_text(encoding="utf-8")
    assert Outline(text).open == [] and not any(f"<td>{word}" in text for word in ("None", "nan"))
    removes = any(ARMS[name]["method"] == "remove" for name in arms)
    assert [REMOVAL in text, 'id="removed"' in text] == [removes, removes]
    said = " ".join([*PAGE.closing_lines(result), markdown(result), text.split("<h2>How to read")[0]])
    assert "None" not in said.replace("None was made", "") and " nan" not in said
    assert ("single pool gives no interval" in said) == (pools == 1)
    Console(width=100, file=open("/dev/null", "w")).print(*PAGE.tables(result))  # noqa: SIM115 – closed with the process


def test_rows_without_a_value_leave_their_figures_out(run):
    bare = with_rows(run, bins=[], correlations=[], traces=[], gains=[], points=[], comparisons=[])
    assert figures.bins(bare, "base") is figures.correlations(bare, "base") is figures.traces(bare, "base") is None
    assert predictions.gain_grid(bare, "base") is tables.difference_grid(bare, "base") is None
    assert frontier(changed(run, "arms", {}, headline=None), "base") is None
    assert "Not compared with a model without a defence" in sentence(bare, "DP-SGD").text


@pytest.mark.parametrize("squeezed", [False, True])
def test_labels_of_the_frontier_hide_neither_each_other_nor_a_mark(run, squeezed):
    arms = run.result.document()["arms"]
    if squeezed:  # ten arms with overlapping intervals within one point of accuracy
        arms = [
            {**arms[1], "share": 0.01 * (1 + place), "headline": area}
            | {"test_accuracy": accuracy, "test_accuracy_low": accuracy - 0.005, "test_accuracy_high": accuracy + 0.005}
            for place in range(10)
            for accuracy in [0.8 + 0.003 * (place % 4)]
            for area in [{"attack": "lira", "auc": 0.6 + 0.02 * (place % 3), "low": 0.58, "high": 0.66}]
        ]
    shown = with_rows(run, arms=arms)
    figure = frontier(shown, "base")
    axes = figure.axes[0]
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == [arm_words(arm) for arm in shown.result.arms]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    marks = axes.transData.transform([(arm["test_accuracy"], arm["headline"]["auc"]) for arm in arms])
    assert not any(box.contains(*mark) for box in boxes for mark in marks)


def test_scores_stand_in_one_order_whatever_that_of_the_rows(run):
    document = run.result.document()
    turned = with_rows(run, **{name: document[name][::-1] for name in ("correlations", "gains", "bins")})
    for grid in (predictions.correlation_grid, predictions.gain_grid, predictions.bin_grid):
        first = [row[0] for row in grid(turned, "base").texts]
        assert first == [row[0] for row in grid(run, "base").texts] and first[0] == "GNQ"


def test_drawn_numbers_are_those_of_the_rows(run):
    rows = [row for row in run.result.bins if (row.score, row.rule) == ("gnq_log", "same")]
    line = next(line for line in figures.bins(run, "base").axes[0].get_lines() if line.get_label() == "GNQ")
    assert np.allclose(line.get_ydata(), [float(row.auc) for row in rows])
    assert line.get_xdata().tolist() == [1, 2, 3, 4, 5]
    wide = changed(changed(run, "bins", {"bin": 1}, low=-0.7, high=1.9), "correlations", {}, low=-1.8, high=2.1)
    assert np.allclose(figures.bins(wide, "base").axes[0].get_ylim(), (-0.02, 1.02))
    assert np.allclose(figures.correlations(wide, "base").axes[0].get_xlim(), (-1.04, 1.04))
    median = next(row.median for row in run.result.traces if row.score == "gnq")
    assert np.allclose(figures.traces(run, "base").axes[0].get_lines()[0].get_ydata(), median)


@pytest.mark.parametrize("pools", [2, *(pytest.param(pools, marks=pytest.mark.long) for pools in (1, 4))])
def test_inversion_has_a_section_with_pictures_and_tables_where_it_was_made(pools, tmp_path, monkeypatch):
    sketch(monkeypatch)
    text, result = {}, write_gnq_run(tmp_path, arms=("none", GNQ, "dp-8"), pools=pools, inverted=True)
    bare = {name: rows for name, rows in result.items() if not name.startswith("inversion")}
    for made, document in ((False, bare), (True, result)):
        (tmp_path / "result.json").write_text(json.dumps(document))
        text[made] = PAGE.write(tmp_path).read_text(encoding="utf-8")
        assert ("what model inversion finds" in markdown(document)) == made
    assert "nversion" not in text[False] and Outline(text[True]).open == []
    section = text[True].split('<section id="inversion">')[1].split("</section>")[0]
    assert section.count("<img") == 1 + 2 * 3 and "<figcaption>its class mean</figcaption>" in section
    for row in GnqRun.of(result).result.inversions:
        assert in_page(row.ssim_image) in section
    assert "None" not in section and "the twin’s (control)" in section and "<dt>Model inversion</dt>" in text[True]


def test_a_reconstruction_like_the_twins_is_called_the_class_and_nothing_more(tmp_path):
    run = GnqRun.of(write_gnq_run(tmp_path, arms=("none", GNQ, "random-0.2"), inverted=True))
    (said,) = inversion.inversion_verdict(run, "base")
    assert (
        said.kind == "leak" and ": closer to the images." in said.text and "what the class looks like" not in said.text
    )
    assert "removed by GNQ −.2" in said.text and ": less like them." in said.text
    assert "no difference is shown" in said.text  # removal at random changes nothing
    null = changed(run, "inversion_gains", {"arm": "none", "against": "twin"}, low=-0.01, high=0.02)
    (said,) = inversion.inversion_verdict(null, "base")
    assert (
        said.kind == "plain"
        and "no closer, a null result. This may show no more than what the class looks like" in said.text
    )
    corrected = changed(run, "inversion_gains", {"arm": "none", "against": "twin"}, p_holm=0.3)
    assert inversion.inversion_verdict(corrected, "base")[0].kind == "plain"
    assert sentence(run, "Model inversion").kind == "leak"
    older = {name: value for name, value in run.result.document().items() if not name.startswith("inversion")}
    assert inversion.inversion_verdict(GnqRun.of(older), "base") == []


def test_the_terminal_tables_fit_one_hundred_columns_uncut(run):
    first = run.result.document()["arms"][0]["headline"]
    long = changed(run, "arms", {}, headline={**first, "attack": "shadow_posterior"})
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 – closed with the process
    for table in PAGE.tables(long.result.document()):
        console.print(table)
    text = console.export_text()
    assert "…" not in text and max(map(len, text.splitlines())) <= 100
    assert all(arm.arm in text for arm in run.result.arms) and "shadow posteriors" in text
    assert estimate(run.comparison("base", GNQ, "random-0.2").difference, signed=True) in text


def test_markdown_holds_every_cell_and_keeps_its_columns(run):
    text = markdown(run.result.document())
    assert all(f"| {estimate(row.auc)} | {estimate(row.two_sided)} |" in text for row in run.result.table)
    for block in text.split("\n\n"):
        lines = block.splitlines()
        assert not lines[0].startswith("|") or len({line.count("|") for line in lines}) == 1


def test_a_sweep_ends_in_headlines_by_setting(tmp_path, monkeypatch):
    settings = {"base": {"signal": 2.0}, "few": {"recipe.epochs": 2, "signal": 0.0}}
    result = write_gnq_run(tmp_path, settings, arms=("none", GNQ), pools=2)
    run = GnqRun.of(result)
    grid = tables.setting_grid(run)
    assert grid.head == ["setting", "no defence", "20\N{NO-BREAK SPACE}% removed by GNQ"]
    own = run.arms("few")
    assert grid.texts[1] == ["few", *(f"{headline(row)}; {number(row.test_accuracy.value)}" for row in own)]
    predicted = predictions.prediction_setting_grid(run)
    assert [row[0] for row in predicted.texts] == ["base", "few"]
    outcome = run.result.correlations[0].outcome
    (told,) = (
        row for row in run.result.correlations
        if (row.setting, row.score, row.outcome) == ("few", "gnq_log", outcome)
    )  # fmt: skip
    (gained,) = (
        row for row in run.result.gains
        if (row.setting, row.score, row.control, row.outcome) == ("few", "gnq_log", "loss_log", outcome)
    )  # fmt: skip
    assert predicted.texts[1][1:3] == [estimate(told.spearman), str(change_entry(gained, 0.95))]
    assert predictions.prediction_setting_grid(with_rows(run, settings=result["settings"][:1])) is None
    sketch(monkeypatch)
    text = PAGE.write(tmp_path).read_text(encoding="utf-8")
    assert in_page(told.spearman) in text
    assert "Shown in full: base." in text and "recipe.epochs = 2" in text and "orch sweep gnq-sweep" in text
    assert "**few: every comparison**" in markdown(result)


def test_a_sweep_of_trainings_shows_uniqueness_attack_and_bins_side_by_side(tmp_path, monkeypatch):
    result = write_gnq_run(
        tmp_path, {"base": {"signal": 2.0}, "few": {"recipe.epochs": 2, "signal": 0.0}}, arms=("none",), pools=2
    )
    levels = [
        {"setting": name, "score": "gnq_log", "median": value, "low": value - 2.0, "high": value + 2.0}
        for name, value in (("base", 7.25), ("few", 14.0))
    ]
    result["levels"] = [*levels, {**levels[0], "score": "diagonal"}]
    run = GnqRun.of(result)
    grid = sweeps.level_grid(run)
    (cell,) = (
        row for row in result["table"]
        if (row["setting"], row["attack"], row["moment"]) == ("few", "lira", "after") and row["group"] == "contributors"
    )  # fmt: skip
    (arm,) = run.arms("few")
    assert arm.steps == 40
    told = ["14.0 [12.0, 16.0]", ".350 [.300, .400]", interval_of(cell, "auc", "auc_low", "auc_high")]
    assert grid.texts[1] == ["few", *told, estimate(arm.test_accuracy)]
    drawn = sweep_figures.levels(run)
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["base", "few"]
    spots = [line.get_xdata()[0] for line in drawn.axes[0].get_lines() if len(line.get_xdata()) == 1]
    assert spots == [7.25, 14.0]
    bins = sweeps.bin_setting_grid(run)
    rows = [
        row for row in result["bins"]
        if (row["setting"], row["score"], row["rule"]) == ("few", "gnq_log", "same")
    ]  # fmt: skip
    assert bins.texts[1] == ["few", *(interval_of(row, "auc", "low", "high") for row in rows)]
    lines = [
        line for line in sweep_figures.bin_settings(run).axes[0].get_lines() if line.get_label() in ("base", "few")
    ]
    assert lines[1].get_ydata().tolist() == [row["auc"] for row in rows]
    text = markdown(result)
    assert "| few | 14.0 [12.0, 16.0] | .350" in text and "by bin of GNQ" in text
    del result["levels"]  # of an older version
    assert sweeps.level_grid(GnqRun.of(result)).texts[1][1] == DASH
    sketch(monkeypatch)
    PAGE.write(tmp_path)
    alike = GnqRun.of(write_gnq_run(tmp_path, arms=("none",), pools=2))
    assert not any(make(alike) for make in (sweep_figures.levels, sweeps.level_grid, sweep_figures.bin_settings))


@pytest.mark.long
def test_removal_of_several_shares_is_drawn_against_the_share(tmp_path, monkeypatch):
    shares = {f"removed={share:g}": share for share in (0.1, 0.2, 0.4)}
    result = write_gnq_run(tmp_path, {name: {} for name in shares}, arms=("none", GNQ, "random-0.2"), pools=2)
    for entry in result["settings"]:
        entry["overrides"] = {"defences": []}
    for field in ("arms", "table", "comparisons"):
        for row in result[field]:
            for name in ("arm", "against"):
                if row.get(name, "none") != "none":
                    row[name] = row[name].replace("0.2", f"{shares[row['setting']]:g}")
            if row.get("share"):
                row["share"] = shares[row["setting"]]
    run = GnqRun.of(result)
    grid = sweeps.cut_grid(run)
    assert [row[:2] for row in grid.texts] == [
        [name, f"{share}\N{NO-BREAK SPACE}%"] for name in ("GNQ", "at random") for share in (10, 20, 40)
    ]
    arm = next(row for row in run.result.arms if row.arm == "gnq_log-0.4")
    kept = run.kept("removed=0.4", arm)
    assert grid.texts[2][2] == str(headline(arm)) and grid.texts[2][6] == estimate(kept.auc)
    left, right = sweep_figures.cut_curves(run).axes
    lines = {line.get_label(): line for line in right.get_lines()}
    np.testing.assert_allclose(lines["GNQ"].get_xdata(), [0, 0.1, 0.2, 0.4])
    assert lines["GNQ"].get_ydata()[-1] == kept.auc.value
    assert {line.get_label() for line in left.get_lines()} >= {"GNQ", "at random"}
    (tmp_path / "result.json").write_text(json.dumps(result))
    sketch(monkeypatch)
    assert "Removal by share" in PAGE.write(tmp_path).read_text(encoding="utf-8")
    assert "Removal by share" in markdown(result)
    result["settings"][0]["overrides"] = {"recipe.epochs": 2}
    assert sweeps.cut_grid(GnqRun.of(result)) is None  # other models: no curve


def test_unfinished_and_foreign_runs_are_refused_in_one_line(tmp_path, audit):
    with pytest.raises(BadInput, match=r"not a finished run: result\.json is missing"):
        PAGE.write(tmp_path)
    (tmp_path / "scores.parquet").write_bytes((audit / "scores.parquet").read_bytes())
    result = json.loads((audit / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps(result | {"kind": "tmia"}))
    with pytest.raises(BadInput, match="of kind 'tmia'"):
        PAGE.write(tmp_path)


def test_numbers_keep_their_sign_and_lose_their_zero():
    assert [number(value) for value in (0.6421, -0.0123, 1.0, None)] == [".642", "−.012", "1.000", DASH]
    assert [number(value, signed=True) for value in (0.5, -0.5, 0.0, -0.0001)] == ["+.500", "−.500", ".000", ".000"]


def test_without_pictures_neither_result_nor_page_has_one_also_when_it_is_written_again(tmp_path, monkeypatch):
    sketch(monkeypatch)
    result = write_gnq_run(tmp_path, arms=("none",), pools=2, inverted=True)
    assert "data:image" in json.dumps(result) and "data:image" in PAGE.write(tmp_path).read_text(encoding="utf-8")
    bare = PAGE.without_pictures(result)
    assert bare["pictures"] is False and "data:image" not in json.dumps(bare)
    (tmp_path / "result.json").write_text(json.dumps(bare))
    assert main(["report", str(tmp_path)]) == 0
    assert "data:image" not in (tmp_path / "report.html").read_text(encoding="utf-8")
