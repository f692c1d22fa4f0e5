"""``orch score`` from a file to result, page and gate; what cannot be judged is one line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from audits.errors import BadInput
from audits.statistics.held_out import held_out_decisions
from audits.statistics.judged import Judged
from audits.statistics.null import permutation_p
from audits.statistics.predictive_value import predictive_interval, predictive_value
from audits.statistics.rank_sums import limit_p
from orchestrator.cli.main import main
from orchestrator.report.result import read_run
from orchestrator.scored.attacks import Attack
from orchestrator.scored.epsilons import why_not
from orchestrator.scored.names import encoded
from orchestrator.scored.rows import ScoreResult
from tests.cases.runs import draw_only

WITHOUT_FIGURES = pytest.mark.usefixtures("without_figures")
COLUMNS = ["--member", "is_member", "--score", "lira", "--group", "model", "--point", "id"]


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_only(monkeypatch, "none")


def table(size: int = 60, targets: int = 4) -> dict[str, list[Any]]:
    """Return a plain table of scores."""
    rng = np.random.default_rng(1)
    member = np.concatenate([rng.permutation(np.arange(size) % 2 == 0) for _ in range(targets)])
    score = rng.normal(size=member.size) + member
    return {
        "is_member": [int(each) for each in member],
        "lira": score.round(6).tolist(),
        "loss": (-score + rng.normal(size=member.size)).tolist(),
        "called": ["member" if each > 1 else "non-member" for each in score],
        "model": [f"m{place // size}" for place in range(member.size)],
        "id": list(range(member.size)),
    }


def written(columns: dict[str, list[Any]], path: Path) -> Path:
    """Write a table as CSV."""
    pyarrow.csv.write_csv(pa.table(columns), path)
    return path


def test_scores_become_result_page_and_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "roc")
    file, out = written(table(), tmp_path / "scores.csv"), tmp_path / "out"
    words = ["score", str(file), *COLUMNS, "--decision", "called", "--fpr", "0.1", "--out", str(out)]
    assert main([*words, "--fail-above", "lira.auc=0.99"]) == 0
    shown = capsys.readouterr().out
    assert "over 4 targets" in shown and "PPV" in shown
    result = read_run(out, ScoreResult)
    (row,) = result.table
    assert row.targets == 4 and row.members == 120 and row.above_chance and row.thresholds == "held out"
    assert [value.prior for value in result.predictive_values] == [0.01, 0.1] * 2 and len(result.decisions) == 1
    assert result.epsilons[0].pairs == 120 and not result.no_epsilon
    page = (out / "report.html").read_text()
    assert "<svg" in page and "who was trained on" in page and (out / "figures" / "roc.svg").is_file()

    (out / "report.html").unlink()
    assert main(["report", str(out)]) == 0
    assert (out / "report.html").read_text() == page

    capsys.readouterr()
    assert main([*words[:-2], "--json", "--fail-above", "auc=0.6"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["table"][0]["auc"] == row.auc.value
    assert "auc is 0.7" in told.err and "above 0.6" in told.err


@pytest.mark.long
@WITHOUT_FIGURES
def test_scores_that_were_written_are_read_again(tmp_path: Path) -> None:
    """In short: ``test_layouts.py``, of scores with decisions."""
    file, out, again = written(table(), tmp_path / "scores.csv"), tmp_path / "out", tmp_path / "again"
    assert main(["score", str(file), *COLUMNS, "--decision", "called", "--fpr", "0.1", "--out", str(out)]) == 0
    assert main(["score", str(out / "scores.parquet"), "--fpr", "0.1", "--out", str(again)]) == 0
    assert read_run(again, ScoreResult).table[0].auc == read_run(out, ScoreResult).table[0].auc


@WITHOUT_FIGURES
def test_infinite_scores_are_the_surest_of_all_and_none_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = table()
    largest = 1e6
    ends = {f"{largest}": float("inf"), f"{-largest}": -float("inf")}
    columns["lira"] = [float(np.sign(each) * largest) if abs(each) > 1.5 else each for each in columns["lira"]]
    told = {}
    for name, scores in {"finite": columns["lira"], "infinite": [ends.get(str(s), s) for s in columns["lira"]]}.items():
        file = written({**columns, "lira": scores}, tmp_path / f"{name}.csv")
        assert main(["score", str(file), *COLUMNS, "--json", "--out", str(tmp_path / name)]) == 0
        told[name] = json.loads(capsys.readouterr().out)
    assert np.isinf(pyarrow.parquet.read_table(tmp_path / "infinite" / "scores.parquet")["score"].to_numpy()).sum() > 20
    assert told["infinite"]["table"] == told["finite"]["table"] and told["infinite"]["table"][0]["members"] == 120
    assert main(["report", str(tmp_path / "infinite")]) == 0


def test_a_table_with_a_mark_of_its_encoding_is_read_and_one_of_semicolons_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{place % 2},0.{place * 7 % 97:02d}" for place in range(100)]
    file = tmp_path / "scores.csv"
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(["is_member,lira", *rows]).encode())
    assert main(["score", str(file), *COLUMNS[:4]]) == 0
    file.write_text("\n".join(["is_member,lira", *rows]).replace(".", ";").translate({44: 59, 59: 44}))
    capsys.readouterr()
    assert main(["score", str(file), *COLUMNS[:4]]) == 2
    assert "separated by semicolons; separate them by commas" in capsys.readouterr().err


def test_low_scores_may_speak_for_members(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(table(), tmp_path / "scores.csv")
    areas = []
    for direction in ("--higher-is-member", "--lower-is-member"):
        assert main(["score", str(file), "--member", "is_member", "--score", "loss", direction, "--json"]) == 0
        areas.append(json.loads(capsys.readouterr().out)["table"][0]["auc"])
    assert sum(areas) == pytest.approx(1.0) and areas[1] > 0.6


REFUSED: list[tuple[dict[str, list[Any]], list[str], str]] = [
    ({}, ["--member", "is_membr", "--score", "lira"], "did you mean 'is_member'"),
    ({}, ["--member", "is_member", "--score", "lyra"], "did you mean 'lira'"),
    ({}, [], "say which column is the truth"),
    ({"is_member": [2.5] * 240}, COLUMNS, "holds '2.5'; membership is written as 0/1"),
    ({"is_member": ["maybe"] * 240}, COLUMNS, "holds 'maybe'; membership is written as"),
    ({"is_member": [1] * 240}, COLUMNS, "has no non-members"),
    ({"is_member": [1] * 60 + [0, 1] * 90}, COLUMNS, "group 'm0' has no non-members among 60 rows"),
    ({"lira": [0.5, float("nan"), float("nan")] + [0.1] * 237}, COLUMNS, "2 of 240 values of column 'lira'"),
    ({"lira": ["high"] + ["0.1"] * 239}, COLUMNS, "holds text, 'high' in row 1"),
    ({"id": [0, 1, 1, *range(3, 240)]}, COLUMNS, "point '1' of group 'm0' stands in rows 2 and 3"),
    ({}, [*COLUMNS, "--fpr", "0.001"], "--fpr 0.001 cannot be measured with 120 non-members"),
    ({}, [*COLUMNS, "--fpr", "7"], "--fpr 7 must lie between 0 and 1"),
    ({}, [*COLUMNS, "--fail-above", "lyra.auc=0.6"], "did you mean 'lira'"),
    ({}, [*COLUMNS, "--decision", "called", "--decision", "called"], "give one decision a score"),
]


@pytest.mark.parametrize(("change", "words", "said"), REFUSED, ids=[said[:30] for *_, said in REFUSED])
def test_what_cannot_be_judged_is_one_line(
    change: dict[str, list[Any]], words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(table() | change, tmp_path / "scores.csv")
    assert main(["score", str(file), *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1, error


def test_files_that_are_no_table_are_refused_and_nothing_is_unpickled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "head.csv").write_text("member,score\n")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "scores.pkl").write_bytes(pickle.dumps([1]))
    np.savez(tmp_path / "objects.npz", score=np.array([{}, 1], dtype=object), member=np.array([0, 1]))
    np.savez(tmp_path / "flat.npz", score=np.zeros((3, 2)))
    (tmp_path / "renamed.npz").write_bytes(pickle.dumps([1]))
    for name, said in (
        ("empty.csv", "is empty"),
        ("head.csv", "has no rows"),
        ("bad.parquet", "cannot be read as Parquet"),
        ("bad.json", "cannot be read as JSON"),
        ("scores.pkl", "pickle files are never read"),
        ("objects.npz", "never unpickled"),
        ("flat.npz", "no vectors"),
        ("renamed.npz", "is no .npz file"),
        ("gone.csv", "is not there"),
    ):
        assert main(["score", str(tmp_path / name)]) == 2, name
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, error


def test_rows_without_a_number_are_left_out_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = table()
    columns["lira"][:2] = [float("nan"), float("nan")]
    file = written(columns, tmp_path / "scores.csv")
    assert main(["score", str(file), *COLUMNS, "--drop-missing", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["table"][0]["members"] + told["table"][0]["non_members"] == 238 and "2 rows" in told["notes"][0]


def test_thresholds_are_not_set_by_the_points_that_they_judge() -> None:
    rng, calls = np.random.default_rng(0), []
    member = np.arange(80) % 2 == 0
    for repeat in range(200):
        judged = Judged("base", "x", rng.normal(size=80), member, np.zeros(80, int))
        calls.append(held_out_decisions(judged, 0.05, repeat))
    assert np.mean(calls) == pytest.approx(0.05, abs=0.008)
    assert np.mean(np.array(calls)[:, ~member]) == pytest.approx(0.05, abs=0.008)


def test_p_values_of_large_tables_are_those_of_permutations() -> None:
    rng = np.random.default_rng(0)
    target, member = np.repeat(np.arange(4), 500), rng.random(2000) < 0.5
    scores = np.round(rng.normal(size=(2000, 3)) + np.array([0.0, 0.08, 0.12]) * member[:, None], 1)
    drawn = permutation_p(scores, member, target, draws=4000)
    assert limit_p(scores, member, target) == pytest.approx(drawn, abs=0.02)


def test_a_value_in_a_crowd_is_bounded_by_its_rates() -> None:
    assert predictive_value(0.5, 0.01, 0.01) == pytest.approx(0.5 / (0.5 + 0.99))
    assert predictive_value(0.0, 0.0, 0.1) is None
    low, high = predictive_interval([50], [100], [1], [100], 0.01)
    assert 0.05 < low < predictive_value(0.5, 0.01, 0.01) < high  # type: ignore[operator]  # it is defined
    with pytest.raises(BadInput, match="prior"):
        predictive_value(0.5, 0.1, 1.0)


def test_a_bound_on_epsilon_needs_members_drawn_anew_in_each_target() -> None:
    member = np.random.default_rng(0).random(200) < 0.5
    points, target = np.tile(np.arange(200), 2), np.repeat([0, 1], 200)
    anew, models = np.random.default_rng(7).random(200) < 0.5, encoded(pa.array(["5", "7"]))
    for second, said in ((~member, "share points"), (member, "share points"), (anew, "")):
        judged = Judged("base", "x", np.zeros(400), np.concatenate([member, second]), target, points)
        found = why_not(Attack(judged, models))
        assert said in found and bool(said) == bool(found) == ("5 and 7" in found)
    assert "--point" in why_not(Attack(Judged("base", "x", np.zeros(400), np.tile(member, 2), target), models))


@WITHOUT_FIGURES
def test_the_order_of_rows_draws_nothing_and_few_members_make_no_certainty(tmp_path: Path) -> None:
    columns = {"is_member": [1] * 40 + [0] * 40, "lira": [1.0, 0.0] * 40}
    turned = {name: values[::-1] for name, values in columns.items()}
    for place, each in enumerate((columns, turned)):
        file = written(each, tmp_path / f"{place}.csv")
        assert main(["score", str(file), *COLUMNS[:4], "--out", str(tmp_path / str(place))]) == 0
    first, second = (read_run(tmp_path / str(place), ScoreResult).epsilons for place in range(2))
    assert first == second and first[0].right < 30
    few = written({"is_member": [1] * 3 + [0] * 200, "lira": [9.0] * 3 + [0.0] * 200}, tmp_path / "few.csv")
    assert main(["score", str(few), *COLUMNS[:4], "--out", str(tmp_path / "few")]) == 0
    (row, *_) = read_run(tmp_path / "few", ScoreResult).table
    assert row.auc.value == 1.0 and row.auc.low is not None and row.auc.low < 0.5


@WITHOUT_FIGURES
def test_scores_the_wrong_way_round_are_no_all_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = table()
    columns["lira"] = [-each for each in columns["lira"]]
    file = written(columns, tmp_path / "scores.csv")
    assert main(["score", str(file), *COLUMNS, "--out", str(tmp_path / "out"), "--fail-above", "auc=0.6"]) == 1
    said = capsys.readouterr().out
    assert "inconclusive: control direction of scores: Members have lower scores than others" in said
    verdict = json.loads((tmp_path / "out" / "result.json").read_text())["verdict"]
    assert verdict["level"] == "cannot be told" and verdict["controls"][0]["state"] == "failed"
    columns["loss"] = [-each for each in columns["lira"]]
    file = written(columns, tmp_path / "both.csv")
    words = ["score", str(file), *COLUMNS, "--score", "loss", "--out", str(tmp_path / "both")]
    assert main([*words, "--fail-above", "auc=0.6"]) == 1
    assert "gate auc=0.6: failed: auc is 0.7" in capsys.readouterr().out, "what another attack finds stands"
    capsys.readouterr()
    assert main([*words[:-1], str(tmp_path / "alone"), "--fail-above", "loss.auc=0.9"]) == 0
    assert "gate loss.auc=0.9: passed" in capsys.readouterr().out, "a control of another attack does not hold it"
    states = {
        (each["name"], each["subject"]): each["state"]
        for each in json.loads((tmp_path / "alone" / "result.json").read_text())["controls"]
    }
    assert [states["direction of scores", name] for name in ("lira", "loss")] == ["failed", "held"]


@WITHOUT_FIGURES
def test_scores_that_are_all_alike_show_nothing(tmp_path: Path) -> None:
    file = written({"is_member": [1, 0] * 40, "lira": [1.0] * 80}, tmp_path / "scores.csv")
    assert main(["score", str(file), *COLUMNS[:4], "--out", str(tmp_path / "out")]) == 0
    verdict = json.loads((tmp_path / "out" / "result.json").read_text())["verdict"]
    assert verdict["level"] == "cannot be told" and "its scores are all alike" in verdict["headline"]


@WITHOUT_FIGURES
def test_decisions_that_break_their_promise_are_said(tmp_path: Path) -> None:
    columns = {**table(), "decision_0.1": [float(place % 3 == 0) for place in range(240)]}
    del columns["called"]
    columns |= {"setting": ["base"] * 240, "attack": ["lira"] * 240, "target": columns.pop("model")}
    columns |= {"member": [bool(each) for each in columns.pop("is_member")], "score": columns.pop("lira")}
    columns["point_id"] = columns.pop("id")
    del columns["loss"]
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "scores.parquet")
    assert main(["score", str(tmp_path / "scores.parquet"), "--out", str(tmp_path / "out")]) == 0
    result = read_run(tmp_path / "out", ScoreResult)
    assert "30.0% at a promised 10.0%" in result.warnings[-1] and "void" in result.warnings[-1]
    (row,) = result.table
    assert row.void and row.found_fpr_off and all(each.void for each in result.predictive_values)
