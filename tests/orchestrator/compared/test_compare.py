"""``orch compare`` on made-up runs of every kind, on settings of one, and on scores from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from orchestrator.cli.main import main
from orchestrator.compared.rows import CompareResult
from orchestrator.report.result import run_of
from tests.cases.runs import draw_only
from tests.orchestrator.compared.made_up import POINTS, TARGETS, Columns, apollo, compared, gnq, mia, rows, run, tmia

MAKERS = {"toy": lambda columns: columns, "apollo": apollo, "tmia": tmia, "gnq": gnq, "mia": mia}


@pytest.mark.parametrize("kind", MAKERS)
def test_runs_of_every_kind_are_paired_by_target(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make = MAKERS[kind]
    folders = [
        run(tmp_path / name, kind, make(rows(seed, gain))) for name, seed, gain in (("a", 1, 0.0), ("b", 2, 1.0))
    ]
    result = compared(capsys, *folders, "--metric", "auc")
    assert {row.paired for row in result.table} == {"targets"}
    units = 3 if kind in ("gnq", "mia") else TARGETS
    assert {row.shared_targets for row in result.table} == {units} and f"all {units} targets" in result.pairs[0].reason
    significant = {row.attack.split(".")[-1]: row.differs for row in result.table}
    assert significant["loss"] == (kind != "tmia") and not significant.get("right", False)
    if kind in ("apollo", "tmia"):
        everything = compared(capsys, *folders)
        rates = {"apollo": {"auc", "tpr", "fpr"}, "tmia": {"auc", "tpr", "fpr", "precision"}}[kind]
        assert {row.metric for row in everything.table} == rates


def test_a_hit_rate_that_is_void_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(tmp_path / "a", "mia", mia(rows(1, 0.0)))
    second = run(tmp_path / "b", "mia", mia(rows(2, 0.5)), void="loss")
    result = compared(capsys, first, second)
    assert {(row.attack, row.metric) for row in result.table} == {
        ("loss", "auc"), ("loss", "fpr"), ("right", "auc"), ("right", "tpr"), ("right", "fpr"),
    }  # fmt: skip
    said = "In b, not compared with a: hit rates of base/loss, void because it broke a nominal false-positive rate."
    assert result.pairs[0].left_out == (said,) and not result.notes
    assert result.verdict is not None and result.verdict.headline.startswith(said)
    capsys.readouterr()
    assert main(["compare", first, second]) == 0 and capsys.readouterr().out.startswith(said)
    assert main(["compare", first, second, "--metric", "tpr", "--attack", "loss"]) == 2
    assert not compared(capsys, first, second, "--metric", "auc").pairs[0].left_out


def one_target(seed: int, points: slice) -> Columns:
    """Return the scores of the first attack on some points of the first target, with decisions."""
    table = mia(rows(seed, 0.0))
    return {name: values[:POINTS][points] for name, values in table.items()}


def test_of_single_targets_what_is_said_of_pairing_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(tmp_path / "a", "mia", one_target(1, slice(0, 40)), contents="a")
    part = run(tmp_path / "b", "mia", one_target(2, slice(20, 60)), contents="a")
    apart = run(tmp_path / "c", "mia", one_target(2, slice(40, 60)), contents="a")
    result = compared(capsys, first, part)
    assert {(row.paired, row.shared_points) for row in result.table} == {("points", 20)}
    reason = result.pairs[0].reason  # the members are the same, and no target varies
    assert "20 points are in both" in reason and "different members" not in reason and "vary" not in reason
    reason = compared(capsys, first, apart).pairs[0].reason
    assert reason.startswith("Unpaired: no point is known to be in both") and "targets" not in reason


def test_what_nobody_saw_vary_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = [one_target(1, slice(0, 30)), one_target(2, slice(30, 60))]
    for table in tables:
        table["decision_0.1"] = [float(each) for each in table["member"]]
    folders = [run(tmp_path / name, "mia", table, contents="a") for name, table in zip("ab", tables, strict=True)]
    by_metric = {row.metric: row for row in compared(capsys, *folders).table}
    for metric, rate in (("tpr", 1.0), ("fpr", 0.0)):
        row = by_metric[metric]
        assert (row.first_value, row.second_value, float(row.difference), row.p) == (rate, rate, 0.0, 1.0)
        assert not row.difference.bounded and not row.identical  # 0 of 15 and 0 of 15 are no proof of equal rates


def test_a_rate_is_identical_where_what_it_counts_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = [mia(rows(1, 0.0)), mia(rows(1, 0.0))]
    tables[1]["decision_0.1"] = [
        float(called or member) for called, member in zip(tables[1]["decision_0.1"], tables[1]["member"], strict=True)
    ]
    tables[1]["score"] = [score + 1e-3 * row for row, score in enumerate(tables[1]["score"])]
    folders = [run(tmp_path / name, "mia", table, contents="a") for name, table in zip("ab", tables, strict=True)]
    result = compared(capsys, *folders, "--attack", "loss")
    found = {row.metric: (row.identical, row.p_holm is None) for row in result.table}
    assert found == {"auc": (False, False), "tpr": (False, False), "fpr": (True, True)}


def test_alarms_are_identical_though_the_members_are_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, part = one_target(1, slice(0, 60)), one_target(1, slice(0, 60))
    kept = [row for row, member in enumerate(part["member"]) if not member or row < 30]
    part = {name: [values[row] for row in kept] for name, values in part.items()}
    folders = [run(tmp_path / name, "mia", each, contents="a") for name, each in (("a", whole), ("b", part))]
    result = compared(capsys, *folders)
    assert {row.metric: row.identical for row in result.table} == {"auc": False, "tpr": False, "fpr": True}
    assert len({(row.shared_points, row.shared_targets) for row in result.table}) == 1, "points of both, in each row"


def test_what_is_not_shared_makes_intervals_wider_and_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path / "a", "toy", rows(1, 0.0))
    paired = compared(capsys, first, run(tmp_path / "b", "toy", rows(2, 0.5)))
    other = compared(capsys, first, run(tmp_path / "c", "toy", rows(2, 0.5, membership=9)))
    elsewhere = compared(capsys, first, run(tmp_path / "d", "toy", rows(2, 0.5), data="fashion14"))

    def width(result: CompareResult) -> float:
        low, high = result.table[0].difference.ends
        return high - low

    assert width(paired) < width(other) and width(paired) < width(elsewhere)
    assert "Points are paired, targets are not" in other.pairs[0].reason
    assert "the data differ" in elsewhere.pairs[0].reason and elsewhere.table[0].shared_points == 0


def test_settings_of_one_run_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [rows(1, 0.0, setting="low"), rows(2, 0.8, setting="high")]
    sweep = run(tmp_path / "sweep", "toy", {name: both[0][name] + both[1][name] for name in both[0]})
    result = compared(capsys, sweep, "--setting", "low", "--setting", "high")
    assert [side.label for side in result.sides] == ["low", "high"] and result.table[0].differs
    again = run(tmp_path / "again", "toy", {name: both[0][name] + both[1][name] for name in both[0]})
    assert {row.setting for row in compared(capsys, sweep, again).table} == {"low", "high"}
    assert main(["compare", sweep, "--setting", "low", "--setting", "hihg"]) == 2
    assert "did you mean 'high'" in capsys.readouterr().err


def test_page_table_and_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folders = [run(tmp_path / name, "toy", rows(seed, seed / 4)) for seed, name in enumerate(("a", "b", "c"))]
    assert main(["compare", *folders, "--all-pairs", "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "b − a" in shown and "c − b" in shown and max(map(len, shown.split("b − a: ")[0].splitlines())) <= 80
    document = json.loads((tmp_path / "out" / "compare.json").read_text())
    result = run_of(document, CompareResult)
    assert len(result.pairs) == 3 and len(result.table) == 6
    assert [row.p_holm >= row.p for row in result.table if row.p_holm is not None and row.p is not None] == [True] * 6
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in page and "Paired: all 6 targets" in page
    verdict = result.verdict
    assert verdict is not None and len(verdict.findings) == 6 and verdict.level == "significant difference"
    assert verdict.headline in page and f"Verdict: {verdict.headline}" in " ".join(shown.split())
    significant = [row for row in result.table if row.differs]
    assert f"{len(significant)} of 6 differences are statistically significant: loss, auc (" in verdict.headline
    assert f"{6 - len(significant)} cannot be distinguished from zero: differences of at least ." in verdict.headline
    for row, found in zip(result.table, verdict.findings, strict=True):
        assert (found.level == "significant difference") == row.differs == (found.seen_from is None)
        assert row.differs or (found.seen_from or 0.0) > max(row.difference.errors)


def test_a_run_beside_itself_is_the_same_audit_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(1, 0.0)
    order = np.random.default_rng(0).permutation(len(table["score"]))
    folders = [
        run(tmp_path / "a", "toy", table),
        run(tmp_path / "b", "toy", {name: [values[place] for place in order] for name, values in table.items()}),
    ]
    result = compared(capsys, *folders)
    assert [(row.difference.value, row.p) for row in result.table] == [(0.0, 1.0)] * 2
    assert not any(row.differs for row in result.table) and result.verdict is not None
    assert result.identical and result.pairs[0].reason.endswith("Their scores are identical, point by point.")
    assert result.verdict.headline == "The scores are identical, point by point: this is the same audit twice."
    assert "conclude" not in result.verdict.advice
    assert {each.text for each in result.verdict.findings} == {"no difference, identical scores"}
    some = compared(capsys, *folders, "--attack", "loss").verdict
    assert some is not None and "same audit" not in some.headline and "identical" in some.headline


def test_one_score_that_differs_makes_runs_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = rows(1, 0.0), rows(1, 0.0)
    second["score"][0] += 1e-9
    result = compared(capsys, run(tmp_path / "a", "toy", first), run(tmp_path / "b", "toy", second))
    assert {row.difference.value for row in result.table} == {0.0} and result.verdict is not None
    assert not result.identical and "identical" not in result.pairs[0].reason
    assert "No difference is statistically significant after correction" in result.verdict.headline
    assert "Do not conclude that nothing differs" in result.verdict.advice


def test_a_run_that_kept_no_scores_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [run(tmp_path / name, "toy", rows(1, 0.0)) for name in ("a", "b")]
    document = json.loads((tmp_path / "b" / "result.json").read_text())
    (tmp_path / "b" / "result.json").write_text(json.dumps(document | {"aggregate_only": True}))
    (tmp_path / "b" / "scores.parquet").unlink()
    assert main(["compare", *folders]) == 2
    error = capsys.readouterr().err
    assert "was run with --aggregate-only and kept no scores" in error and error.count("\n") == 1


@pytest.mark.long
def test_scores_from_elsewhere_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "none")
    folders = []
    for name, seed, gain in (("a", 1, 0.0), ("b", 2, 1.0)):
        table = {key: value[: TARGETS * POINTS] for key, value in rows(seed, gain).items()}
        (tmp_path / f"{name}.json").write_text(json.dumps(table))
        words = ["--member", "member", "--score", "score", "--group", "target", "--point", "point_id", "--fpr", "0.1"]
        assert main(["score", str(tmp_path / f"{name}.json"), *words, "--out", str(tmp_path / name)]) == 0
        folders.append(str(tmp_path / name))
    prints = [json.loads(Path(folder, "result.json").read_text())["fingerprints"] for folder in folders]
    assert prints[0] == prints[1] and prints[0]["data"] is None and {*prints[0]["members"]} == {"base"}
    capsys.readouterr()
    result = compared(capsys, *folders)
    assert {row.name for row in result.table} == {"auc", "tpr at 10 %", "fpr at 10 %"}
    assert result.table[0].paired == "targets" and result.table[0].differs


def test_runs_of_different_questions_and_other_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy_run = run(tmp_path / "toy", "toy", rows(1, 0.0))
    other = run(tmp_path / "other", "apollo", apollo(rows(1, 0.0)))
    apart = run(tmp_path / "apart", "toy", rows(1, 0.0) | {"attack": ["x"] * (2 * TARGETS * POINTS)})
    for words, said in (
        ([toy_run, other], "they ask different questions"),
        ([toy_run], "give two runs or more"),
        ([toy_run, toy_run], "given twice"),
        ([toy_run, str(tmp_path)], "is not a finished run"),
        ([toy_run, f"{other}/result.json"], f"is a file; give the folder of the run, {other}"),
        ([toy_run, apart], "have no attack in common: loss, right; x"),
        ([toy_run, str(apart), "--metric", "acu"], "did you mean 'auc'"),
    ):
        assert main(["compare", *words]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, error


@pytest.mark.parametrize(
    "damage",
    [
        {"plan": {}}, {"plan": {"data": None}}, {"table": ["x"]}, {"table": [{"void": True}]},
        {"plan": {"data": {"name": "digits"}, "unlearning": ["x"]}},
        {"plan": {"data": {"name": "digits"}, "unlearning": {"a": 1}}},
        {"settings": [{"setting": "base", "overrides": 1}]},
        {"settings": [{"setting": "base", "overrides": {"unlearning": ["x"]}}]},
        {"kind": "nobody"},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_result_is_one_line_that_names_the_file(
    damage: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [run(tmp_path / name, "toy", rows(1, 0.0)) for name in ("a", "b")]
    file = tmp_path / "b" / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    assert main(["compare", *folders]) == 2
    error = capsys.readouterr().err
    assert str(file) in error and error.count("\n") == 1
