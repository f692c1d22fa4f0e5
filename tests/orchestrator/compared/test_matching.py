"""Which methods ``orch compare`` compares, and what it says first of those that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.orchestrator.compared.made_up import Columns, apollo, compared, gnq, rows, run


def methods(**gains: float) -> Columns:
    """Return a table of Apollo with a method for each gain; controls of all tables have the same scores."""
    found: Columns = {}
    for name, gain in gains.items():
        seed = 0 if name in ("identity", "retrain") else sum(map(ord, name))
        own = apollo(rows(seed, gain))
        own["unlearner"] = [name] * len(own["score"])
        for column, values in own.items():
            found.setdefault(column, []).extend(values)
    return found


def test_single_methods_are_compared_and_controls_are_no_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path / "a", "apollo", methods(identity=0.0, retrain=0.0, ssd=1.0), contents="a")
    second = run(tmp_path / "b", "apollo", methods(identity=0.0, retrain=0.0, scrub=0.0), contents="a")
    result = compared(capsys, first, second, "--metric", "auc", "--attack", "loss")
    by_method = {row.attack: row for row in result.table}
    own = by_method["ssd.loss"]
    assert own.second_attack == "scrub.loss" and own.differs and not own.control
    assert own.p_holm == own.p  # a family of one: the controls are identical by construction
    assert all(by_method[f"{name}.loss"].identical and by_method[f"{name}.loss"].p_holm is None
               for name in ("identity", "retrain"))  # fmt: skip
    assert result.pairs[0].matched and not result.pairs[0].left_out and not result.identical
    assert result.verdict is not None and "b leaks less than a" in result.verdict.headline
    for value in (own.first_value, own.second_value):
        assert f"{value:.3f}".lstrip("0") in result.verdict.headline


def test_what_is_not_compared_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(tmp_path / "a", "apollo", methods(identity=0.0, ssd=1.0, boundary=0.5), contents="a")
    second = run(tmp_path / "b", "apollo", methods(identity=0.0, scrub=0.0, finetune=0.2), contents="a")
    assert main(["compare", first, second, "--out", str(tmp_path / "out")]) == 0
    shown, page = capsys.readouterr().out, (tmp_path / "out" / "report.html").read_text()
    left_out = "Only in a, not compared: method ssd, method boundary."
    assert shown.startswith(left_out) and page.index(left_out) < page.index("All differences")
    result = compared(capsys, first, second)
    assert result.verdict is not None and result.identical and result.pairs[0].controls_only
    assert result.verdict.headline.startswith("Only in a, not compared") and "this is the same audit" not in (
        result.verdict.headline
    )
    matched = compared(capsys, first, second, "--match", "ssd=finetune", "--metric", "auc")
    pairs = {(row.attack, row.second_attack) for row in matched.table if row.second_attack}
    assert ("ssd.loss", "finetune.loss") in pairs and ("boundary.loss", "scrub.loss") in pairs  # those that are left


def test_a_renamed_method_is_compared_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plans = (
        [{"method": "scrub", "rate": 0.1}, {"method": "ssd"}],
        [{"method": "scrub", "rate": 0.1, "as": "hot"}, {"method": "ssd", "as": "cold"}],
    )
    first = run(tmp_path / "a", "apollo", methods(scrub=1.0, ssd=0.5), unlearning=plans[0], contents="a")
    second = run(tmp_path / "b", "apollo", methods(cold=0.0, hot=0.2), unlearning=plans[1], contents="a")
    result = compared(capsys, first, second)
    assert {(row.attack, row.second_attack) for row in result.table if "loss" in row.attack} == {
        ("scrub.loss", "hot.loss"), ("ssd.loss", "cold.loss"),
    }  # fmt: skip


def test_arms_and_attacks_match_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []
    for name, arm, gain in (("a", "dp-8", 1.0), ("b", "dp-0.5", 0.0)):
        parts = [gnq(rows(1, 0.0)), gnq(rows(2, gain))]
        parts[1]["arm"] = [arm] * len(parts[1]["arm"])
        folders.append(
            run(tmp_path / name, "gnq", {key: parts[0][key] + parts[1][key] for key in parts[0]}, contents="a")
        )
    result = compared(capsys, *folders)
    assert {(row.attack, row.second_attack, row.identical) for row in result.table} == {
        ("none.loss", None, True), ("dp-8.loss", "dp-0.5.loss", False),
    }  # fmt: skip
    toys = [run(tmp_path / name, "toy", rows(seed, 0.0)) for seed, name in enumerate(("c", "d"))]
    crossed = compared(capsys, *toys, "--match", "loss=right")
    assert {(row.attack, row.second_attack) for row in crossed.table} == {("loss", "right")}
    assert len(crossed.pairs[0].left_out) == 2


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["--match", "ssd"], "A=B"),
        (["--match", "ssd=scrbu"], "did you mean 'scrub'"),
        (["--match", "sd=scrub"], "did you mean 'ssd'"),
        (["--match", "ssd=scrub", "--match", "ssd=identity"], "twice"),
        (["--match", "ssd=loss"], "a method with a method"),
    ],
)
def test_names_that_cannot_be_matched_are_one_line(
    words: list[str], fact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path / "a", "apollo", methods(identity=0.0, ssd=1.0))
    second = run(tmp_path / "b", "apollo", methods(identity=0.0, scrub=0.0))
    assert main(["compare", first, second, *words]) == 2
    error = capsys.readouterr().err
    assert fact in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("sets", "targets", "units", "over"),
    [
        (6, 6, 6, "targets with their shadows"),
        (3, 6, 3, "targets with their shadows"),  # two targets share each set
        (1, 6, 6, "targets; shadows held fixed"),
        (1, 1, 1, "points; shadows held fixed"),
    ],
)
def test_only_intervals_that_let_shadows_vary_are_judged(
    sets: int, targets: int, units: int, over: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for name, gain in (("a", 1.5), ("b", 0.0)):
        table = apollo(rows(1, gain))
        kept = [row for row, target in enumerate(table["target"]) if target < targets]
        table = {key: [value[row] for row in kept] for key, value in table.items()}
        table["shadow_set"] = [target * sets // targets for target in table["target"]]
        folders.append(run(tmp_path / name, "apollo", table, contents="a"))
    result = compared(capsys, *folders, "--attack", "loss", "--metric", "auc")
    (row,) = result.table
    assert (row.over, row.first_targets) == (over, units)
    assert row.p is not None and row.p < 0.05 and (row.difference.high or 0.0) < 0.0
    judged = over == "targets with their shadows"
    assert row.differs == judged == (row.p_holm is not None)
    assert result.verdict is not None and (result.verdict.level == "significant difference") == judged
    assert ("b leaks less than a" in result.verdict.headline) == judged
    (finding,) = result.verdict.findings
    assert judged or over in finding.text
