"""What later versions added to a result: exposure list, three groups, budgets, transfer, utility of settings."""

import base64
import json
import re

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from audits.statistics.radii import answers
from orchestrator.apollo.page import matrices, privacy, radii
from orchestrator.apollo.page.exposure import exposure_grid
from orchestrator.apollo.page.figures import FIRST, MOST_CURVES, attack_colours
from orchestrator.apollo.page.page import PAGE
from orchestrator.apollo.page.reading import ApolloRun, read_apollo_run
from orchestrator.apollo.page.swept import panels
from orchestrator.apollo.page.tables import all_grids, exposure_lines
from orchestrator.apollo.page.verdict import PAIRS, search_gains, verdict
from orchestrator.apollo.result.judging import judge
from orchestrator.apollo.result.metrics import metrics
from orchestrator.apollo.result.rows import RadiusPoints
from orchestrator.apollo.result.words import words
from orchestrator.report.grid_formats import as_html, as_markdown
from orchestrator.report.numbers import number
from orchestrator.report.pictures import thumbnail
from orchestrator.report.style import drawing, save
from orchestrator.report.words import access_level
from tests.cases.apollo_page import sketched_page, whole_page
from tests.cases.apollo_result import AREA, transfers

NONE = float("nan")
ADDED = {"budget", "transfer", "three_way", "setting_utility"}


@pytest.fixture(scope="module")
def whole():
    return sketched_page()


@pytest.fixture(scope="module")
def result(whole):
    return json.loads((whole / "result.json").read_text())


@pytest.mark.long
def test_every_added_figure_is_there_and_is_not_empty():
    """In short its numbers: ``test_report.py``."""
    whole = whole_page()
    for name in ADDED:
        svg = (whole / "figures" / f"{name}.svg").read_text()
        pixels = imread(whole / "figures" / f"{name}.png")
        assert svg.count("<path") > 20 and min(pixels.shape[:2]) > 150
        colours = (pixels[..., :3] * 255).astype(int) @ [65536, 256, 1]
        assert np.unique(colours).size > 20  # more than paper and ink
    text = (whole / "report.html").read_text(encoding="utf-8")
    assert all(f'id="figure-{name}"' in text for name in ADDED)


def test_the_page_lists_exposed_points_with_thumbnails_and_what_the_promise_was_worth(whole, result):
    text = (whole / "report.html").read_text(encoding="utf-8")
    points = result["exposed"]["points"]
    clear = next(point for point in points if point["unlearner"] == "scrub")
    assert f'alt="point {clear["point_id"]}" src="data:image/png;base64,' in text
    assert f"<td>{clear['point_id']}</td><td>{clear['label']}</td><td>{clear['target']}</td>" in text
    for name in AREA:
        own = [point for point in points if point["unlearner"] == name]
        assert f'<span class="ci">{min(12, len(own))} of {len(own)}</span>' in text
    row = next(row for row in result["discoveries"] if (row["unlearner"], row["attack"]) == ("scrub", "apollo"))
    assert f"<td>0.1</td><td>{row['discoveries']}</td>" in text
    assert text.count("forget / retained") == 1 and "Power against queries" in text


def test_the_verdict_the_terminal_and_the_tracker_say_how_many_points_are_exposed(whole, result):
    sentences = verdict(read_apollo_run(whole))
    said = next(sentence for sentence in sentences if sentence.head.startswith("Single deleted points"))
    found = sum(point["unlearner"] == "scrub" for point in result["exposed"]["points"])
    assert said.kind == "leak" and f"SCRUB {found}" in said.text
    (line,) = exposure_lines(ApolloRun.of(result))
    assert f"SCRUB {found}" in line and "rate 0.1" in line
    logged = metrics(result, "base")
    row = next(row for row in result["discoveries"] if (row["unlearner"], row["attack"]) == ("scrub", "apollo"))
    assert {name: logged[f"scrub.apollo.{name}"] for name in ("discoveries", "fdp", "power")} == {
        name: row[name] for name in ("discoveries", "fdp", "power")
    }


def test_without_discoveries_the_verdict_says_so(whole, result):
    none = [row | {"discoveries": 0, "false": 0} for row in result["discoveries"]]
    changed = result | {"discoveries": none, "exposed": result["exposed"] | {"points": []}}
    run = ApolloRun.of(changed, read_apollo_run(whole).scores)
    said = next(sentence for sentence in verdict(run) if sentence.head.startswith("Single deleted points"))
    assert said.kind == "plain" and "No single point is found" in said.text


def markdown(run):
    return "\n\n".join(map(as_markdown, all_grids(run)))


def test_rows_are_grouped_by_access_weakest_first(whole, result):
    table = [row | {"access": "oracle"} if row["attack"] == "loss_threshold" else row for row in result["table"]]
    table = [row | {"access": "logits"} if row["attack"] == "label_gap" else row for row in table]
    run = ApolloRun.of(result | {"table": table}, read_apollo_run(whole).scores)
    assert run.accesses == ["labels", "posteriors", "logits", "oracle"]
    assert run.attacks[-3:] == ["lira", "label_gap", "loss_threshold"]
    assert [access_level(name) for name in run.accesses] == sorted(access_level(name) for name in run.accesses)
    titles = [words(name) for name in run.accesses]
    text = markdown(run)
    places = [text.index(f"| {title} |") for title in titles]
    assert places == sorted(places)
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 – closed with the process
    console.print(PAGE.tables(run.result.document())[-1])
    lines = console.export_text().splitlines()
    starts = [next(place for place, line in enumerate(lines) if line.strip() == title) for title in titles]
    assert starts == sorted(starts)


def test_markdown_holds_discoveries_and_the_three_groups(whole, result):
    run = read_apollo_run(whole)
    text = markdown(run)
    assert text.count("| 0.1 |") == len(result["discoveries"]) and "balanced accuracy" in text
    assert "forget / unseen AUC" in text
    rows = [row | {"discoveries": row["discoveries"] * (place < 3)} for place, row in enumerate(result["discoveries"])]
    assert markdown(ApolloRun.of(result | {"discoveries": rows}, run.scores)).count("| 0.1 |") == 3
    nothing = markdown(ApolloRun.of(result | {"discoveries": rows[3:]}, run.scores))
    assert "No point is found at a promised false discovery rate of 0.1" in nothing


def test_settings_are_grouped_by_the_part_before_the_number_and_meet_the_plan(whole):
    (panel,) = panels(read_apollo_run(whole))
    assert (panel.axis, panel.values) == ("forget", (0.01, 0.1, 0.5))
    assert panel.settings == ("forget=0.01", "base", "forget=0.5")


def test_seeds_are_no_quantity(whole, result):
    settings = [{"setting": f"seed={seed}", "overrides": {"seed": seed}} for seed in range(3)]
    assert panels(ApolloRun.of(result | {"settings": settings}, {})) == []


def test_transfer_settings_name_target_and_shadow(whole):
    assert matrices.transfers(read_apollo_run(whole)) == {
        tuple(entry["setting"].split("<-")): entry["setting"] for entry in transfers() if "<-" in entry["setting"]
    }


def test_accuracy_lost_is_paired_within_targets(whole, result):
    rows = {(row["unlearner"], row["target"]): row["test_accuracy"] for row in result["utility"]}
    run = read_apollo_run(whole)
    losses = privacy.accuracy_losses(run, "scrub")
    assert losses == pytest.approx([rows["identity", t] - rows["scrub", t] for t in (0, 1)])
    kept = [row | {"test_accuracy_before": 0.9} for row in result["utility"]]
    assert privacy.accuracy_losses(ApolloRun.of(result | {"utility": kept}, {}), "scrub") == pytest.approx(
        [0.9 - rows["scrub", t] for t in (0, 1)]
    )


def test_more_attacks_than_colours_are_cut_by_name(result):
    rows = [result["table"][0] | {"attack": f"other_{index}"} for index in range(12)]
    table = [*rows, *(result["table"][0] | {"attack": name} for name in FIRST[:5])]
    shown = attack_colours(ApolloRun.of(result | {"table": table}, {}))
    assert len(shown) == MOST_CURVES == len(set(shown.values())) and set(FIRST[:5]) <= set(shown)
    few = attack_colours(ApolloRun.of(result, {}))
    both = [name for name in FIRST if name in few and name in shown]
    assert len(both) >= 4
    assert {name: few[name] for name in both} == {name: shown[name] for name in both}


@pytest.mark.parametrize("shape", [(5, 7), (3, 5, 7), (5, 7, 3), (1, 5, 7)])
def test_thumbnails_keep_the_pixels(shape, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    address = thumbnail(image)
    assert address == thumbnail(image) == thumbnail(image / 255.0)
    (tmp_path / "x.png").write_bytes(base64.b64decode(address.partition("base64,")[2]))
    pixels = (imread(tmp_path / "x.png")[..., :3] * 255).round()
    expected = image.transpose(1, 2, 0) if shape[0] == 3 else image.reshape(*image.squeeze().shape[:2], -1)
    np.testing.assert_array_equal(pixels, np.broadcast_to(expected, pixels.shape))


def test_radius_figure_shows_intervals_and_flips(tmp_path):
    under = np.array([[0.1, 0.5], [0.2, 0.3], [np.nan, np.nan]])
    over = np.full((3, 2), np.nan)

    def points(under, over, flips):
        spans = (tuple((low, high) for low, high in span.tolist()) for span in (under, over))
        said = tuple(answers("under", under, np.array(flips), np.ones(3, bool)).tolist())
        ends = dict(zip(("under", "over"), spans, strict=True))
        return RadiusPoints(**ends, flip_under=flips, flip_over=(NONE,) * 3, answer_under=said, answer_over=("",) * 3)

    with drawing("radii"):
        figure = radii.method_radii(points(under, over, (0.3, 0.9, NONE)))
    assert len(figure.axes) == 1 and figure.axes[0].get_title(loc="left").endswith("2 intervals, 1 refuted")
    said = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert said == ["θ_u says y where asked (1)", "flip before the end: refuted (1)", "not asked inside (0)"]
    save(figure, "radii", tmp_path)
    assert (tmp_path / "radii.svg").stat().st_size > 5000 and (tmp_path / "radii.png").stat().st_size > 5000
    assert radii.method_radii(points(over, over, (NONE,) * 3)) is None


@pytest.mark.long
def test_inline_figures_of_a_whole_run_share_no_ids():
    """In short of a sweep: ``test_report.py``."""
    text = (whole_page() / "report.html").read_text(encoding="utf-8")
    clips = [re.findall(r'<clipPath id="([^"]+)"', svg) for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)]
    names = [name for own in clips for name in set(own)]
    assert len(names) == len(set(names)) > 0


def test_a_run_of_many_rows_is_shown_as_matrices(whole, result, monkeypatch):
    monkeypatch.setattr("orchestrator.apollo.page.tables.MOST_ROWS", 5)
    text = PAGE.markdown(whole)
    first = result["table"][0]["setting"]
    rows = [row for row in result["table"] if row["setting"] == first]
    unlearners, attacks = ({row[name] for row in rows} for name in ("unlearner", "attack"))
    part = text.split("* where beyond chance by p (Holm) and interval**")[1].split("\n**")[0]
    lines = part.strip().splitlines()
    body = [line.strip("| ").split(" | ") for line in lines[2:]]
    assert len(body) == len(attacks) and all(len(line) == 3 + len(unlearners) for line in body)
    accesses = [line[0] for line in body]
    assert accesses == sorted(accesses, key=["labels only", "posteriors", "logits", "oracle"].index)
    shown = sorted(cell.split(" ")[0] for line in body for cell in line[3:])
    assert shown == sorted(number(row["auc"]) for row in rows)


def test_attacks_are_compared_in_the_pairs_that_both_stand_in_the_run(whole):
    run = read_apollo_run(whole)
    pairs = {(gain.attack, gain.reference) for gain in search_gains(run)}
    present = {attack for _, attack in run.cells}
    assert pairs == {pair for pair in PAIRS if set(pair) <= present} and len(pairs) >= 2


@pytest.fixture(scope="module")
def broken(whole, result):
    """The content of a result in which Apollo breaks its promise against SCRUB in the main setting."""
    late = {"found_fpr": 0.3, "found_fpr_low": 0.2, "found_fpr_high": 0.4, "found_fpr_p": 1e-9}
    cell = ("base", "scrub", "apollo")
    rows = [
        row | (late if (row["setting"], row["unlearner"], row["attack"]) == cell else {}) for row in result["table"]
    ]
    return judge(ApolloRun.of(result | {"table": rows}).result).document()


SAID = (
    "or Apollo against SCRUB in base (found .300 at a promised .050): their TPR, p- and q-values and exposure list are "
    "void and must not be quoted"
)


def test_page_and_terminal_say_first_what_is_void(whole, broken):
    run = ApolloRun.of(broken, read_apollo_run(whole).scores)
    promises, points, *_ = PAGE.closing_lines(broken)
    assert promises == f"Promised rates did not hold f{SAID}" and "SCRUB void" in points
    first, *others = verdict(run)
    assert first.kind == "bad" and SAID in first.text
    (listed,) = (sentence for sentence in others if sentence.head.startswith("Single deleted points"))
    assert "SCRUB void" in listed.text
    table = as_html(exposure_grid(run, {}))
    own = sum(point.unlearner == "scrub" for point in run.result.exposed.points)
    assert own and table.count(">void</td>") == 2 * min(12, own), "p and q of each point"


def test_void_stands_in_the_place_of_rates_and_discoveries_and_is_not_tracked(whole, result, broken):
    run = ApolloRun.of(broken, read_apollo_run(whole).scores)
    text = markdown(run)
    main = next(line for line in text.splitlines() if "| Labels only | SCRUB | Apollo |" in line)
    assert main.split(" | ")[5:7] == ["void", ".300 [.200, .400]"] and "(void: promised rate broken" in text
    (line,) = (line for line in text.splitlines() if line.startswith("| base | SCRUB | Apollo |") and "| 0.1 |" in line)
    assert line.count("| void |") == 2
    assert {(row.unlearner, row.attack) for row in run.result.budget if row.void} == {("scrub", "apollo")}
    lost = metrics(result, "base").keys() - metrics(broken, "base").keys()
    gone = ("tpr", "tpr_low", "tpr_high", "discoveries", "fdp", "power")
    assert lost == {f"scrub.apollo.{name}" for name in gone}, "AUC and the found rate stay"
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 – closed with the process
    console.print(PAGE.tables(broken)[-1])
    assert console.export_text().count("void") == 2, "in the title and in the row"
