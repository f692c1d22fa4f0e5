"""What a GNQ run is said to show: nulls, controls that fail and defences that gain nothing included."""

import pytest

from orchestrator.gnq.page import tables
from orchestrator.gnq.page.page import PAGE
from orchestrator.gnq.page.reading import GnqRun
from orchestrator.gnq.page.verdict import REMOVAL, verdict
from orchestrator.gnq.result.gather import CORRELATION, RATE, interval
from orchestrator.gnq.result.judging import judge
from orchestrator.gnq.result.paired import PairedRow
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import FAILED, HELD, MISSING
from orchestrator.judgement.wording import warnings
from orchestrator.report.numbers import estimate, number
from tests.orchestrator.gnq.drawn_result import write_gnq_run

GNQ = "gnq_log-0.2"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return GnqRun.of(write_gnq_run(tmp_path_factory.mktemp("gnq")))


def changed(run, field, where, **fields):
    """Return the run with other values in the rows of a list that have the values ``where``."""
    document = run.result.document()
    rows = [
        row | fields if all(row[name] == value for name, value in where.items()) else row for row in document[field]
    ]
    return with_rows(run, **{field: rows})


def with_rows(run, **fields):
    """Return the run with other fields in its result, which is judged by them."""
    return GnqRun(judge(GnqRun.of({**run.result.document(), **fields}).result))


def with_knowing_shadows(run, **values):
    """Return the run with shadows that know the rule as judges of the kept points before the removal, too."""
    document = run.result.document()
    rows = [
        row | {"shadows": "adaptive"} | values
        for row in document["table"]
        if (row["group"], row["attack"], row["shadows"], row["moment"]) == ("kept", "lira", "naive", "before")
    ]
    return with_rows(run, table=[*document["table"], *rows])


def sentence(run, start):
    return next(part for part in verdict(run) if part.head.startswith(start))


def with_headline(run, arm, **values):
    own = next(row for row in run.result.document()["arms"] if row["arm"] == arm)
    return changed(run, "arms", {"arm": arm}, headline={**own["headline"], **values})


def test_the_verdict_says_what_the_published_model_gives_away(run):
    arm = run.undefended("base")
    said = sentence(run, "Published")
    assert said.kind == "leak" and f"AUC {number(arm.headline.auc.value)}" in said.text
    null = sentence(with_headline(run, "none", low=0.46, high=0.55), "Published")
    assert null.kind == "plain" and "A null result: not above chance; an AUC above .550 is ruled out." in null.text
    wide = sentence(with_headline(run, "none", low=0.2, high=1.06), "Published")
    assert "not above chance; no AUC is ruled out." in wide.text
    assert sentence(with_headline(run, "none", low=0.3, high=0.4), "Published").kind == "bad"
    alone = sentence(with_headline(run, "none", low=None, high=None), "Published")
    assert alone.kind == "plain" and "A single pool gives no interval" in alone.text
    silent = changed(run, "arms", {"arm": "none"}, headline=None)
    assert "no undefended model was attacked" in sentence(silent, "Published").text


def test_removal_is_called_better_than_a_control_only_beyond_interval_and_holm(run):
    def said(low, high, p_holm):
        values = {"difference": (low + high) / 2, "low": low, "high": high, "p_holm": p_holm}
        return sentence(changed(run, "comparisons", {"arm": GNQ}, **values), "20\N{NO-BREAK SPACE}% removed by GNQ")

    better = said(-0.08, -0.02, 0.01)
    assert better.kind == "good" and better.text.count(": lower.") == 3
    assert "−.050 [−.080, −.020]" in better.text and "Test accuracy changes by" in better.text
    uncorrected = said(-0.08, -0.02, 0.2)
    assert uncorrected.kind == "plain" and uncorrected.text.count("but not after Holm’s correction") == 3
    assert said(-0.08, 0.02, 0.01).text.count("no difference is shown") == 3
    assert said(0.02, 0.08, 0.01).text.count(": higher.") == 3
    below, above = (
        PairedRow(difference=Estimate(low, low, high), p=None, p_holm=0.05)
        for low, high in ((-0.08, -0.02), (0.01, 0.02))
    )
    assert (below.clear(0.95), below.clear(0.99), above.clear(0.95)) == (-1, 0, 1)


def test_noise_helps_by_a_score_only_beyond_the_same_noise_at_random(run):
    name, other = "noise-gnq_log-0.2-1", "noise-random-0.2-1"
    result = run.result.document()
    arm = next(row for row in result["arms"] if row["arm"] == name)
    result["arms"].append({**arm, "arm": other, "ranking": "random"})
    (base,) = (
        row for row in result["comparisons"]
        if (row["arm"], row["against"], row["group"], row["attack"], row["shadows"])
        == (name, "none", "contributors", "lira", "adaptive")
    )  # fmt: skip
    base |= {"difference": -0.05, "low": -0.08, "high": -0.02, "p_holm": 0.01}
    beside = {**base, "against": other}
    result["comparisons"] += [beside, {**base, "arm": other}]

    def said():
        return sentence(GnqRun.of(result), "Noise 1 on 20\N{NO-BREAK SPACE}% by GNQ")

    assert said().kind == "good" and "Against noise on as many points at random −.050 [−.080, −.020]" in said().text
    beside |= {"difference": 0.0, "low": -0.02, "high": 0.02, "p_holm": 1.0}
    assert said().kind == "plain" and "no difference is shown. Noise on some gradients" in said().text
    control = sentence(GnqRun.of(result), "Noise 1 on 20\N{NO-BREAK SPACE}% at random")
    assert control.kind == "plain" and control.text.endswith("This is a control: the points are chosen at random.")
    assert (
        "Against no defence −.050 [−.080, −.020] by LiRA: lower" in control.text and "at random −" not in control.text
    )


def test_comparisons_are_those_of_one_attack_on_contributors_with_shadows_that_know(run):
    row = run.comparison("base", GNQ, "random-0.2")
    assert (row.group, row.attack, row.shadows) == ("contributors", "lira", "adaptive")
    said = sentence(run, "20\N{NO-BREAK SPACE}% removed by GNQ").text
    assert f"Against removing as many at random {number(row.difference.value)}" in said
    losing = changed(run, "comparisons", {"attack": "loss"}, difference=-0.9, low=-0.91, high=-0.89, p_holm=0.0)
    assert sentence(losing, "20\N{NO-BREAK SPACE}% removed by GNQ").text == said  # a better attack changes nothing


def test_removal_is_never_sold_as_more_than_it_is(run):
    said = sentence(run, "Removal").text
    assert said.startswith(REMOVAL) and "shows no lower average" not in said
    kept = run.cell("base", GNQ, "kept", "lira", ("adaptive",))
    assert estimate(kept.auc) in said
    seen = next(row.onion for row in run.result.arms if row.arm == GNQ)
    assert f"{number(seen.before)} before, {estimate(seen.after)} after" in said
    nothing = changed(run, "comparisons", {"arm": GNQ, "against": "none"}, low=-0.02, high=0.01)
    assert "This run shows no lower average." in sentence(nothing, "Removal").text
    whole = " ".join(part.text for part in verdict(run))
    assert "Removal gives no bound" in sentence(run, "DP-SGD").text and "as DP" not in whole


def test_kept_points_are_compared_before_and_after_with_shadows_that_know_as_much(run):
    naive = run.cell("base", GNQ, "kept", "lira", ("naive",), "before")
    after = estimate(run.cell("base", GNQ, "kept", "lira", ("adaptive",)).auc)
    alike = with_knowing_shadows(run, auc=0.585, auc_low=0.57, auc_high=0.6)
    said = sentence(alike, "Removal").text
    steps = f"the kept points before the removal .585 [.570, .600], the same points in the new model {after}"
    assert steps in said
    assert estimate(naive.auc) not in said
    older = sentence(run, "Removal").text  # naive shadows alone
    assert "before the removal" not in older and f"the kept points in the new model {after}" in older
    arm = next(row for row in run.result.arms if row.arm == GNQ)
    lines = [row[1:] for row in tables.way_grid(alike, "base", arm).texts if row[2] == "before removal"]
    assert [(row[0], row[2]) for row in lines] == [
        ("naive shadows", estimate(naive.auc)),
        ("adaptive shadows", ".585 [.570, .600]"),
    ]
    assert lines[1][4].endswith("shadows know the defence") and "do not know" in lines[0][4]


def test_the_control_alarms_where_models_that_saw_nothing_are_told_apart(run):
    null = {"moment": "null"}
    held = changed(run, "table", null, auc=0.5, auc_low=0.48, auc_high=0.52)
    assert control(held).state == HELD
    broken = changed(run, "table", null, auc=0.6, auc_low=0.58, auc_high=0.62)
    assert control(broken).state == FAILED and "51 of 51 fair comparisons" in control(broken).why
    unfair = changed(held, "table", null | {"group": "kept_unfiltered"}, auc=0.6, auc_low=0.58, auc_high=0.62)
    assert control(unfair).state == HELD  # that comparison is filtered on one side and need not hold
    assert "AUC .600 [.580, .620] on models that saw no point" in sentence(unfair, "Removal").text
    place = {"moment": "null", "group": "contributors", "attack": "lira", "shadows": "naive", "arm": "dp-8"}
    one = changed(held, "table", place, auc=0.9, auc_low=0.88, auc_high=0.92)
    found = control(one)  # few enough for luck, but not by so much
    assert (found.state, found.attack, found.evidence) == (FAILED, "lira", Estimate(0.9, 0.88, 0.92))
    assert "in 1 of 51 fair comparisons, under DP-SGD" in found.why
    assert [entry.text for line in tables.area_grid(one, "base").lines for entry in line if entry.tone == "miss"] == [
        ".900"
    ]
    (warning,) = warnings(one.result.controls)
    assert warning.startswith("control failed: null models: ") and "(AUC .90 [.88, .92], lira)" in warning
    lucky = changed(held, "table", place, auc=0.52, auc_low=0.505, auc_high=0.535)
    assert control(lucky).state == HELD and warnings(lucky.result.controls) == []
    missing = with_rows(run, table=[row for row in run.result.document()["table"] if row["moment"] != "null"])
    assert control(missing).state == MISSING
    assert any(line.startswith("Control") for line in PAGE.closing_lines(missing.result.document()))
    first, second, *others = PAGE.closing_lines(held.result.document())
    assert first == REMOVAL and second.startswith("Verdict: Trial run") and len(others) == 1


def control(run):
    (found,) = run.result.controls
    return found


def test_gnq_is_measured_against_its_best_control(run):
    beaten = changed(run, "gains", {"score": "gnq_log"}, low=0.02, high=0.1, p_holm=0.001)
    assert sentence(beaten, "Predictions by GNQ").kind == "good"
    tied = changed(beaten, "gains", {"control": "loss_log"}, difference=0.001, low=-0.01, high=0.012)
    said = sentence(tied, "Predictions by GNQ")
    assert said.kind == "plain"
    assert "minus the best control (loss) +.001 [−.010, +.012]: no gain is shown" in said.text


def test_intervals_end_where_the_scale_ends() -> None:
    cut = interval([0.9, 1.0], 0.95, RATE)  # t: .95 ± 12.7 · .05
    assert (cut.low, cut.high) == (pytest.approx(0.95 - 12.706 * 0.05, abs=1e-3), 1.0)
    assert interval([-0.9, 0.9], 0.95, CORRELATION) == Estimate(0.0, -1.0, 1.0)
    free = interval([0.9, 1.0], 0.95)
    assert free.high is not None and free.high > 1.5
    assert interval([0.5], 0.95, RATE) == Estimate(0.5, None, None)
