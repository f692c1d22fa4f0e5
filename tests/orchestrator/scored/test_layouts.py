"""Files of other tools, in their true layout, and of our own runs give the numbers of our own summary."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from audits.statistics import roc
from audits.statistics.intervals import ibragimov_mueller_t
from audits.statistics.judged import rows_by
from audits.statistics.summary import summarise
from orchestrator.cli.main import main
from orchestrator.compared.sides import read_side
from orchestrator.engine.store.payloads import pack_table
from orchestrator.scored.files import read_parquet
from orchestrator.scored.layouts.own import judged_of
from orchestrator.scored.options import Options
from orchestrator.scored.reading import read_scores
from orchestrator.scored.rows import ScoreResult, ScoreRow
from orchestrator.scored.summing import summed_up
from tests.cases.runs import draw_only

TARGETS, POINTS = 3, 80
FIELDS = ("auc", "auc_low", "auc_high", "auc_pooled", "auc_p")
Scores = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(autouse=True)
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_only(monkeypatch, "none")


def drawn() -> Scores:
    """Return scores of two attacks on three targets, the columns of an Apollo run of one unlearner."""
    rng = np.random.default_rng(5)
    member = np.concatenate([rng.permutation(np.arange(POINTS) % 2 == 0) for _ in range(TARGETS)])
    targets, points = np.repeat(np.arange(TARGETS, dtype=np.int32), POINTS), np.tile(np.arange(POINTS), TARGETS)
    columns: Scores = {}
    for place, attack in enumerate(("strong", "weak")):
        score = rng.normal(size=len(member)) + (0.9 - 0.5 * place) * member
        own = {
            "setting": np.full(len(member), "base"),
            "unlearner": np.full(len(member), "scrub"),
            "attack": np.full(len(member), attack),
            "access": np.full(len(member), "labels"),
            "target": targets,
            "shadow_set": np.zeros(len(member), np.int32),
            "point_id": points,
            "group": np.where(member, "forget", "unseen"),
            "label": np.zeros(len(member), np.int32),
            "score": score,
            "queries": np.ones(len(member), np.int32),
            "decision_0.25": (score > 1.0).astype(float),
        }
        columns = {name: np.concatenate([columns[name], each]) if columns else each for name, each in own.items()}
    return columns


def of(columns: Scores, attack: str, target: int | None = None) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return scores and membership of an attack, on one target or on all."""
    rows = columns["attack"] == attack
    rows &= True if target is None else columns["target"] == target
    return columns["score"][rows], columns["group"][rows] == "forget"


def leakpro(columns: Scores, folder: Path) -> list[Path]:
    """Write what LeakPro leaves of two attacks on the first target, rates and counts abridged."""
    found = []
    for attack in ("strong", "weak"):
        score, member = of(columns, attack, 0)
        told = {"result_name": attack, "result_type": "MIAResult", "id": f"{attack}-0123", "roc_auc": 0.7,
                "accuracy": [0.5], "config": {"num_shadow_models": 4}, "fixed_fpr": {"TPR@1%FPR": 0.1},
                "signal_values": score.tolist(), "true_labels": member.astype(int).tolist(),
                "tp": [1], "fp": [0], "tn": [40], "fn": [39], "tpr": [0.025], "fpr": [0.0]}  # fmt: skip
        found.append(folder / f"{attack}-0123.json")
        found[-1].write_text(json.dumps(told))
    return found


def privacy_meter(columns: Scores, folder: Path) -> list[Path]:
    """Write what ML Privacy Meter leaves of an attack on three targets."""
    found = []
    for target in range(TARGETS):
        score, member = of(columns, "strong", target)
        found.append(folder / f"attack_result_{target}.npz")
        np.savez(found[-1], fpr=np.array([0.0, 1.0]), tpr=np.array([0.0, 1.0]), auc=0.7, one_tenth_fpr=0.0,
                 zero_fpr=0.0, scores=score, memberships=member)  # fmt: skip
    return found


def sacro(columns: Scores, folder: Path) -> list[Path]:
    """Write what SACRO-ML leaves of two attacks on the first target: a report and two .npz files beside it."""
    told = {}
    for place, attack in enumerate(("strong", "weak")):
        score, member = of(columns, attack, 0)
        file = f"report_arrays_0000000{place}_instance_0.npz"
        np.savez_compressed(
            folder / file,
            **{"individual.member_prob": score, "individual.member": member.astype(int), "fpr": np.zeros(2)},
        )
        told[f"{attack}_0000000{place}-aaaa"] = {
            "log_id": f"0000000{place}-aaaa",
            "metadata": {"attack_name": attack, "sacroml_version": "2.0.1"},
            "attack_experiment_logger": {"attack_instance_logger": {"instance_0": {"AUC": 0.7, "arrays_file": file}}},
        }
    (folder / "report.json").write_text(json.dumps(told))
    return [folder / "report.json"]


def own(columns: Scores, folder: Path) -> list[Path]:
    """Write the scores table of a run of ours."""
    (folder / "scores.parquet").write_bytes(pack_table(pa.table(columns)))
    return [folder / "scores.parquet"]


def judged(paths: list[Path], **options: Any) -> ScoreResult:
    """Return the result of some files."""
    given = Options(**options)
    return summed_up(read_scores(paths, given), given, "orch score")[0]


def expected(columns: Scores, attack: str, target: int | None) -> dict[str, Any]:
    """Return our own summary's row of an attack."""
    rows = columns["attack"] == attack
    rows &= True if target is None else columns["target"] == target
    (row,) = summarise({name: each[rows] for name, each in columns.items()}, [0.25])
    return row


def numbers(row: ScoreRow) -> list[float]:
    """Return what every summary tells of an attack."""
    return [float(row.auc), *row.auc.ends, row.auc_pooled, row.auc_p]


@pytest.mark.parametrize(
    ("layout", "write", "attacks", "target"),
    [
        ("leakpro", leakpro, ["strong", "weak"], 0),
        ("privacy-meter", privacy_meter, ["Privacy Meter"], None),
        ("sacro-ml", sacro, ["strong", "weak"], 0),
        ("orch", own, ["scrub.strong", "scrub.weak"], None),
    ],
)
def test_layouts_of_other_tools_give_the_numbers_of_our_summary(
    layout: str, write: Callable[[Scores, Path], list[Path]], attacks: list[str], target: int | None, tmp_path: Path
) -> None:
    columns = drawn()
    result = judged(write(columns, tmp_path), fprs=(0.25,) if layout != "orch" else ())
    assert result.layout == layout and [row.attack for row in result.table] == attacks
    for row, attack in zip(result.table, ("strong", "weak"), strict=False):
        ours = expected(columns, attack, target)
        told = numbers(row)
        assert told[:4] == [ours[name] for name in FIELDS[:4]]
        if layout != "orch":  # there, both attacks share the draws
            assert told[4] == ours["auc_p"]
        assert row.targets == (TARGETS if target is None else 1)


def leakpro_in_lists(columns: Scores, folder: Path) -> list[Path]:
    """Write what LeakPro leaves of signals of shape (n, 1): lists of one number each."""
    paths = leakpro(columns, folder)
    for path, deep in zip(paths, (("signal_values",), ("signal_values", "true_labels")), strict=True):
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | {name: [[value] for value in told[name]] for name in deep}))
    return paths


def sacro_in_columns(columns: Scores, folder: Path) -> list[Path]:
    """Write what SACRO-ML leaves of probabilities of shape (n, 1): one attack's in its .npz, one's in the report."""
    (report,) = sacro(columns, folder)
    told = json.loads(report.read_text())
    first, second = (each["attack_experiment_logger"]["attack_instance_logger"]["instance_0"] for each in told.values())
    for place, instance in enumerate((first, second)):
        with np.load(folder / instance["arrays_file"]) as file:
            arrays = dict(file)
        deep = {
            name: each[:, None] for name, each in arrays.items() if name.endswith(("member", "member_prob")[place:])
        }
        if place == 0:
            np.savez_compressed(folder / instance["arrays_file"], **{**arrays, **deep})
        else:
            (folder / instance.pop("arrays_file")).unlink()
            whole = {**arrays, **deep}
            instance["individual"] = {name: whole[f"individual.{name}"].tolist() for name in ("member_prob", "member")}
    report.write_text(json.dumps(told))
    return [report]


@pytest.mark.parametrize(
    ("write", "plain"), [(leakpro_in_lists, leakpro), (sacro_in_columns, sacro)], ids=["leakpro", "sacro-ml"]
)
def test_scores_of_one_column_are_those_of_a_vector(
    write: Callable[[Scores, Path], list[Path]], plain: Callable[[Scores, Path], list[Path]], tmp_path: Path
) -> None:
    found = []
    for each in (write, plain):
        (folder := tmp_path / each.__name__).mkdir()
        found.append(judged(each(drawn(), folder), fprs=(0.25,)))
    assert repr(found[0].table) == repr(found[1].table)
    assert found[0].layout == found[1].layout and len(found[0].table) == 2


@pytest.mark.parametrize("broken", [[[0.1, 0.2]], [[]], [[0.3]] * 3])
def test_signals_of_several_columns_or_of_another_number_of_points_are_one_line(
    broken: list[list[float]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path, _) = leakpro(drawn(), tmp_path)
    told = json.loads(path.read_text())
    rest = [] if len(broken) > 1 else told["signal_values"][1:]
    path.write_text(json.dumps(told | {"signal_values": [*broken, *rest]}))
    assert main(["score", str(path)]) == 2
    error = capsys.readouterr().err
    assert "signal_values" in error and error.count("\n") == 1, error


def test_our_own_decisions_are_those_that_rates_are_of(tmp_path: Path) -> None:
    columns = drawn()
    row, ours = judged(own(columns, tmp_path)).table[0], expected(columns, "strong", None)
    for name in ("tpr", "found_fpr"):
        told = getattr(row, name)
        assert [told.value, told.low, told.high] == [ours[f"{name}{end}"] for end in ("", "_low", "_high")]
    assert row.thresholds == "given" and row.promised_fpr == 0.25 and row.other_targets_tpr == ours["roc_tpr"]


def mia(folder: Path, targets: int, seed: int = 0) -> Path:
    """Write the scores table of a run of ours of so many targets, two a pool with one half of its points each."""
    rng = np.random.default_rng(seed)
    half = rng.permutation(np.arange(POINTS) % 2 == 0)
    member = np.concatenate([half ^ bool(target % 2) for target in range(targets)])
    size = len(member)
    target = np.repeat(np.arange(targets), POINTS)
    table = {
        "setting": ["base"] * size,
        "attack": ["loss"] * size,
        "role": ["target"] * size,
        "pool": target // 2,
        "target": target,
        "point_id": np.tile(np.arange(POINTS), targets) + POINTS * (target // 2),
        "canary": np.zeros(size, bool),
        "member": member,
        "score": rng.normal(size=size) + member + np.repeat(rng.normal(size=targets), POINTS) * member,
    }
    folder.mkdir()
    (folder / "scores.parquet").write_bytes(pack_table(pa.table(table)))
    return folder / "scores.parquet"


@pytest.mark.parametrize("rate", ["0.25", pytest.param("0.1", marks=pytest.mark.long)])
def test_scores_that_are_read_again_give_the_same_rows(tmp_path: Path, rate: str) -> None:
    columns = drawn()
    if rate == "0.1":
        del columns["decision_0.25"]
    (file,) = own(columns, tmp_path)
    assert main(["score", str(file), "--out", str(tmp_path / "out")]) == 0
    first, again = judged([file]), judged([tmp_path / "out" / "scores.parquet"])
    assert {row.thresholds for row in first.table} == {"given" if rate == "0.25" else "held out"}
    assert again.table == first.table and again.predictive_values == first.predictive_values
    (side,) = [read_side(tmp_path / "out")]
    assert all(rate in each.judged.decisions for each in side.said), "what is compared are the decisions of the run"


def test_copies_of_a_file_are_no_further_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = privacy_meter(drawn(), tmp_path)
    files[1].write_bytes(files[0].read_bytes())
    assert main(["score", *map(str, files)]) == 2
    error = capsys.readouterr().err
    assert str(files[0]) in error and str(files[1]) in error and error.count("\n") == 1


def test_a_file_that_may_not_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, open_file = tmp_path / "scores.csv", Path.open
    file.write_text("member,score\n1,2\n0,1\n")

    def locked(path: Path, *mode: str, **more: str) -> object:
        if path == file:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open_file(path, *mode, **more)

    monkeypatch.setattr(Path, "open", locked)
    assert main(["score", str(file)]) == 2
    error = capsys.readouterr().err
    assert f"{file} cannot be read" in error and error.count("\n") == 1


def test_settings_of_one_table_stay_apart(tmp_path: Path) -> None:
    weak, strong = drawn(), drawn()
    strong |= {
        "setting": np.full_like(strong["setting"], "more"),
        "score": strong["score"] + (strong["group"] == "forget"),
    }
    (file,) = own({name: np.concatenate([weak[name], strong[name]]) for name in weak}, tmp_path)
    found = judged([file])
    assert [(row.setting, row.attack) for row in found.table] == [
        (setting, f"scrub.{attack}") for setting in ("base", "more") for attack in ("strong", "weak")
    ]
    for row, columns in zip(found.table, (weak, weak, strong, strong), strict=True):
        assert row.targets == TARGETS
        assert numbers(row)[:3] == [
            expected(columns, row.attack.removeprefix("scrub."), None)[name] for name in FIELDS[:3]
        ]


def test_one_given_model_is_no_pool_of_two_and_bounds_epsilon_as_any_single_target(tmp_path: Path) -> None:
    found = judged([mia(tmp_path / "given", 1)])
    assert not found.no_epsilon and found.epsilons
    assert found.table[0].targets == 1 and "one target" in found.covers


def test_pools_stay_pools_in_several_files_and_in_scores_that_are_read_again(tmp_path: Path) -> None:
    files = [mia(tmp_path / name, 4, seed) for seed, name in enumerate(("a", "b"))]
    alone, both = judged(files[:1]), judged(files)
    assert "2 groups of targets" in alone.covers and "4 groups of targets" in both.covers
    assert both.no_epsilon == alone.no_epsilon != ""
    means = [
        np.mean(
            [roc.auc(row.scores[at], row.member[at]) for at in rows_by(row.target) if row.target[at[0]] // 2 == pool]
        )
        for row in (judged_of(read_parquet(file), "mia")[0] for file in files)
        for pool in (0, 1)
    ]
    low, high = ibragimov_mueller_t(means, 0.95)
    assert numbers(both.table[0])[:3] == pytest.approx([np.mean(means), max(0.0, low), min(1.0, high)])
    for paths, first in ((files[:1], alone), (files, both)):
        out = tmp_path / f"out{len(paths)}"
        assert main(["score", *map(str, paths), "--out", str(out)]) == 0
        again = judged([out / "scores.parquet"])
        assert numbers(again.table[0]) == numbers(first.table[0]) and again.covers == first.covers
        assert again.no_epsilon == first.no_epsilon


def test_a_wrong_layout_a_mixture_and_a_missing_companion_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = drawn()
    (report,) = sacro(columns, tmp_path)
    (first, _) = leakpro(columns, tmp_path)
    for words, said in (
        ([str(first), "--layout", "sacro-ml"], "is not of layout sacro-ml"),
        ([str(first), "--layout", "leekpro"], "did you mean 'leakpro'"),
        ([str(first), str(report)], "several layouts"),
        ([str(first), "--member", "x"], "--score COLUMN"),
        ([str(first), "--member", "x", "--layout", "leakpro"], "has columns of its own"),
    ):
        assert main(["score", *words]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, error
    (tmp_path / "report_arrays_00000000_instance_0.npz").unlink()
    assert main(["score", str(report)]) == 2
    assert "keep report and .npz files together" in capsys.readouterr().err


def test_the_rows_of_all_targets_end_to_end_are_warned_of(tmp_path: Path) -> None:
    path = privacy_meter(drawn(), tmp_path)[0].rename(tmp_path / "attack_result_average.npz")
    result = judged([path], fprs=(0.25,))
    assert "does not tell them apart" in result.notes[0] and "over the points" in result.covers
