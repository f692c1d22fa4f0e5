"""Which methods ``orch compare`` compares, and what it says first of those that it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.runs import draw_only
from tests.orchestrator.compared.made_up import Columns, apollo, compared, gnq, rows, run, tmia


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


def test_what_is_not_compared_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "none")
    first = run(tmp_path / "a", "apollo", methods(identity=0.0, ssd=1.0, boundary=0.5), contents="a")
    second = run(tmp_path / "b", "apollo", methods(identity=0.0, scrub=0.0, finetune=0.2), contents="a")
    assert main(["compare", first, second, "--out", str(tmp_path / "out")]) == 0
    shown, page = capsys.readouterr().out, (tmp_path / "out" / "report.html").read_text()
    left_out = "In a, not compared with b: method ssd, method boundary."
    assert shown.startswith(left_out) and page.index(left_out) < page.index("All differences")
    result = compared(capsys, first, second)
    assert result.verdict is not None and result.identical and result.pairs[0].controls_only
    assert result.verdict.headline.startswith(left_out) and "this is the same audit" not in (result.verdict.headline)
    matched = compared(capsys, first, second, "--match", "ssd=finetune", "--metric", "auc")
    pairs = {(row.attack, row.second_attack) for row in matched.table if row.second_attack}
    assert ("ssd.loss", "finetune.loss") in pairs and ("boundary.loss", "scrub.loss") in pairs  # those that are left


def test_of_several_runs_it_is_said_with_which_a_method_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"a": {"ssd": 1.0, "ft": 0.5}, "b": {"ssd": 0.5, "ft": 0.2}, "c": {"salun": 0.0}}
    folders = [run(tmp_path / name, "apollo", methods(identity=0.0, **made[name]), contents="a") for name in made]
    result = compared(capsys, *folders)
    assert [pair.left_out for pair in result.pairs] == [
        (), ("In a, not compared with c: method ssd, method ft.", "In c, not compared with a: method salun."),
    ]  # fmt: skip
    assert [pair.controls_only for pair in result.pairs] == [False, True]
    assert result.verdict is not None and "Only controls of a and c are compared" in result.verdict.headline


def test_a_rate_that_one_run_has_is_not_compared_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = [apollo(rows(seed, 0.5)) for seed in (1, 2)]
    tables[1]["decision_0.02"] = tables[1].pop("decision_0.1")
    tables[1]["decision_"] = [0.0] * len(tables[1]["score"])
    folders = [run(tmp_path / name, "apollo", each, contents="a") for name, each in zip("ab", tables, strict=True)]
    result = compared(capsys, *folders)
    assert {row.metric for row in result.table} == {"auc"}
    left_out = result.pairs[0].left_out
    assert "In a, not compared with b: rates at 10 %." in left_out
    assert any("rates at 2 %" in each and each.startswith("In b, not compared with a") for each in left_out)
    assert not compared(capsys, *folders, "--metric", "auc").pairs[0].left_out  # nobody asked for rates


def test_a_match_holds_for_the_runs_that_have_both_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = {"a": {"ssd": 1.0, "ft": 0.5}, "b": {"scrub": 0.5, "fisher": 0.2}, "c": {"salun": 0.0, "boundary": 0.1}}
    folders = [run(tmp_path / name, "apollo", methods(identity=0.0, **made[name]), contents="a") for name in made]
    both = ["--metric", "auc", "--attack", "loss", "--match", "ssd=fisher", "--match", "ssd=salun"]
    result = compared(capsys, *folders, *both)
    named = {(row.second, row.attack, row.second_attack) for row in result.table if row.second_attack}
    assert {("b", "ssd.loss", "fisher.loss"), ("c", "ssd.loss", "salun.loss")} <= named
    crossed = compared(capsys, *folders, *both, "--all-pairs")
    assert {(row.first, row.second) for row in crossed.table} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert main(["compare", *folders, "--match", "ssd=nobody"]) == 2
    assert main(["compare", *folders, "--match", "ssd=scrub", "--match", "ssd=fisher"]) == 2
    assert "twice" in capsys.readouterr().err


def test_settings_of_different_modes_ask_different_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweep(name: str, *modes: str) -> str:
        columns: Columns = {}
        for seed, mode in enumerate(modes):
            for column, values in tmia(rows(seed, 0.0, setting=f"s{mode}")).items():
                columns.setdefault(column, []).extend(values)
        folder = run(tmp_path / name, "tmia", columns, contents="a")
        document = json.loads(Path(folder, "result.json").read_text())
        settings = [{"setting": f"s{mode}", "overrides": {}, "mode": mode} for mode in modes]
        Path(folder, "result.json").write_text(json.dumps(document | {"settings": settings}))
        return folder

    one, other, both = sweep("one", "I"), sweep("other", "II"), sweep("both", "I", "II")
    for words in ([one, other], [both, "--setting", "sI", "--setting", "sII"], [both, one, "--match", "sII=sI"]):
        assert main(["compare", *words]) == 2, words
        error = capsys.readouterr().err
        assert "different questions" in error and error.count("\n") == 1
    assert len(compared(capsys, both, one).pairs) == 1  # sI alone


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
    swapped = [{"method": "ssd", "as": "scrub"}, {"method": "scrub", "as": "ssd"}]
    third = run(tmp_path / "c", "apollo", methods(scrub=0.0, ssd=0.2), unlearning=swapped, contents="a")
    turned = compared(capsys, first, third)
    assert not any(row.second_attack for row in turned.table)  # equal names come first, and this is said
    assert {each.split()[0] for each in turned.pairs[0].matched} == {"scrub", "ssd"}
    assert "scrub in a" in turned.pairs[0].matched[0] and "ssd in c" in turned.pairs[0].matched[0]


def test_a_renamed_control_is_compared_with_the_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = [{"method": "identity"}, {"method": "ssd"}, {"method": "retrain"}]
    other = [{"method": "identity", "as": "kept"}, {"method": "scrub"}, {"method": "retrain", "as": "fresh"}]
    first = run(tmp_path / "a", "apollo", methods(identity=0.0, ssd=1.0, retrain=0.0), unlearning=own, contents="a")
    table = methods(identity=0.0, scrub=0.2, retrain=0.0)
    names = {"identity": "kept", "retrain": "fresh"}
    table["unlearner"] = [names.get(name, name) for name in table["unlearner"]]
    second = run(tmp_path / "b", "apollo", table, unlearning=other, contents="a")
    result = compared(capsys, first, second, "--metric", "auc", "--attack", "loss")
    assert {(row.attack, row.second_attack, row.control, row.identical) for row in result.table} == {
        ("identity.loss", "kept.loss", True, True), ("ssd.loss", "scrub.loss", False, False),
        ("retrain.loss", "fresh.loss", True, True),
    }  # fmt: skip
    (method,) = (row for row in result.table if not row.control)
    assert method.p_holm == method.p  # the controls are no tests
    assert not result.pairs[0].left_out and not result.pairs[0].controls_only


def test_whose_models_are_compared_is_said_where_they_are_not_of_one_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = [{"method": "identity", "as": "kept"}, {"method": "ssd"}, {"method": "retrain"}]
    target = {"weights": "w.pt", "members": "0:30", "forget": "0:9", "original": None}
    tables = {name: methods(kept=gain, ssd=1.0, retrain=0.0) for name, gain in (("a", 0.1), ("b", 0.2), ("c", 0.3))}
    given = {"a": target, "b": target | {"original": "o.pt"}, "c": None}
    folders = [
        run(tmp_path / name, "apollo", table, unlearning=plan, contents="a", target=given[name])
        for name, table in tables.items()
    ]
    result = compared(capsys, *folders, "--all-pairs")
    original, trained, both = (pair.matched for pair in result.pairs)
    assert [each.split()[0] for each in original] == ["kept"] and "before unlearning in b" in original[0]
    assert [each.split()[0] for each in trained] == ["ssd"] and "the given model in a" in trained[0]
    assert {each.split()[0] for each in both} == {"kept", "ssd"}
    assert not compared(capsys, *folders[:1], run(tmp_path / "d", "apollo", tables["b"], unlearning=plan, contents="a",
                                                  target=target)).pairs[0].matched  # fmt: skip
    toys = [
        run(tmp_path / name, "toy", rows(1, 0.0), target=own) for name, own in (("e", {"weights": "w"}), ("f", None))
    ]
    (said,) = compared(capsys, *toys).pairs[0].matched
    assert said.startswith("the given model (e) with ")


def test_a_method_by_the_name_of_a_control_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = [{"method": "ssd", "as": "retrain"}, {"method": "identity"}]
    first = run(tmp_path / "a", "apollo", methods(identity=0.0, retrain=0.0), unlearning=named, contents="a")
    table = methods(identity=0.0, scrub=1.0)
    second = run(
        tmp_path / "b", "apollo", table, unlearning=[{"method": "identity"}, {"method": "scrub"}], contents="a"
    )
    result = compared(capsys, first, second, "--metric", "auc", "--attack", "loss")
    by_method = {row.attack: row for row in result.table}
    assert by_method["retrain.loss"].second_attack == "scrub.loss" and not by_method["retrain.loss"].control
    assert by_method["identity.loss"].control and not result.pairs[0].controls_only


def test_several_controls_of_one_kind_are_compared_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = [{"method": "retrain"}, {"method": "retrain", "as": "again"}, {"method": "ssd"}]
    first = run(tmp_path / "a", "apollo", methods(retrain=0.0, again=0.1, ssd=1.0), unlearning=plan, contents="a")
    second = run(tmp_path / "b", "apollo", methods(retrain=0.0, again=0.2, ssd=0.0), unlearning=plan, contents="a")
    third = run(tmp_path / "c", "apollo", methods(retrain=0.0, ssd=0.0), unlearning=plan[::2], contents="a")
    result = compared(capsys, first, second, "--metric", "auc", "--attack", "loss")
    assert {(row.attack, row.second_attack, row.control) for row in result.table} == {
        ("retrain.loss", None, True), ("again.loss", None, True), ("ssd.loss", None, False),
    }  # fmt: skip
    assert compared(capsys, first, third).pairs[0].left_out == ("In a, not compared with c: method again.",)


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
