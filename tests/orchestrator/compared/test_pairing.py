"""What ``orch compare`` pairs: equal contents, whatever they are called; names of points never merge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.data.dataset import Dataset
from audits.statistics.judged import Judged
from orchestrator.cli.main import main
from orchestrator.compared.names import numbered
from orchestrator.engine.data import data_of
from orchestrator.engine.run.fingerprints import questions
from orchestrator.kinds import kind_named, load_plan
from tests.cases.runs import audited
from tests.orchestrator.compared.made_up import POINTS, TARGETS, compared, rows, run

NAMES = st.text(alphabet="01+-. eE٣\0é", max_size=4) | st.integers(0, 10**20).map(str)


@pytest.mark.parametrize(
    ("names", "contents", "paired"),
    [
        (("npz:d.npz", "npz:d.npz"), ("a" * 64, "b" * 64), False),  # the file was written anew
        (("npz:d.npz", "npz:moved/e.npz"), ("a" * 64, "a" * 64), True),
        (("npz:d.npz", "npz:d.npz"), ("a" * 64, ""), False),
        (("npz:d.npz", "npz:d.npz"), ("", ""), False),
        (("digits", "digits"), ("", "a" * 64), True),
        (("digits", "fashion14"), ("", ""), False),
    ],
)
def test_contents_decide_what_is_paired(
    names: tuple[str, str], contents: tuple[str, str], paired: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        run(tmp_path / name, "toy", rows(seed, seed / 2), data=data, contents=content)
        for name, seed, data, content in zip(("a", "b"), (0, 1), names, contents, strict=True)
    )
    result = compared(capsys, first, second)
    assert {row.paired for row in result.table} == {"targets" if paired else "nothing"}
    assert {row.shared_targets for row in result.table} == {TARGETS if paired else 0}
    if not all(contents) and names[0].startswith("npz"):
        assert "no fingerprint" in result.pairs[0].reason


def test_scores_of_another_run_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(tmp_path / "a", "toy", rows(1, 0.0), contents="a")
    second = run(tmp_path / "b", "toy", rows(2, 0.0, membership=1), contents="a")
    assert main(["compare", first, second]) == 0
    (tmp_path / "b" / "scores.parquet").write_bytes((tmp_path / "a" / "scores.parquet").read_bytes())
    capsys.readouterr()
    assert main(["compare", first, second]) == 2
    error = capsys.readouterr().err
    assert "is not that of result.json" in error and error.count("\n") == 1


def said(point: Any, target: Any = "m", member: Any = None) -> Judged:
    """Return scores of points by these names."""
    points = np.array(point, dtype=np.uint64 if isinstance(point[0], int) else object)
    inside = np.arange(len(points)) % 2 == 0 if member is None else np.array(member)
    return Judged("base", "loss", np.zeros(len(points)), inside, np.array([target] * len(points), object), points)


@given(st.lists(NAMES, min_size=1, max_size=8, unique=True), st.lists(NAMES, min_size=1, max_size=8, unique=True))
def test_names_of_points_never_merge(one: list[str], other: list[str]) -> None:
    first, second = numbered(said(one), said(other))
    assert first.point is not None and second.point is not None
    assert len(set(first.point.tolist())) == len(one) and len(set(second.point.tolist())) == len(other)
    assert len({*first.point.tolist()} & {*second.point.tolist()}) == len({*one} & {*other})


def test_numbers_of_any_size_stay_apart() -> None:
    large, small = 2**63 + 1, 2**63 + 2
    first, second = numbered(said([large, 7]), said(["7", str(small)]))
    assert first.point is not None and second.point is not None
    assert {*first.point.tolist()} & {*second.point.tolist()} == {first.point.tolist()[1]}
    by_size = numbered(said([large, small]), said([1, 2]))
    assert by_size[0].point is not None and len(set(by_size[0].point.tolist())) == 2


def test_points_that_one_side_alone_names_keep_their_names() -> None:
    bare = Judged("base", "loss", np.zeros(2), np.array([True, False]), np.array(["m", "n"], object))
    first, second = numbered(said(["01", "1", "01"]), bare)
    assert second.point is None and first.point is not None and len(set(first.point.tolist())) == 2
    assert {*first.target.tolist()} & {*second.target.tolist()} == {second.target.tolist()[0]}


def test_fingerprints_tell_points_members_and_contents_apart() -> None:
    def prints(*asked: Judged) -> dict[str, dict[str, str]]:
        return questions((each.setting, each.target, each.point, each.member) for each in asked)  # type: ignore[misc]

    base = prints(said([1, 2, 3]))
    assert base == prints(said([1, 2, 3]).on(np.array([2, 0, 1]))) == prints(said([1, 2, 3]), said([1, 2, 3]))
    assert base == prints(said(["1", "2", "3"])) != prints(said(["01", "2", "3"]))
    turned = prints(said([1, 2, 3], member=[False, True, False]))
    assert turned["points"] == base["points"] and turned["members"] != base["members"]
    assert prints(said([1, 2, 4]))["points"] != base["points"]
    data = [
        Dataset(name, np.full((2, 3), value, np.float32), np.array([0, 1]), ("a", "b"), None)
        for name, value in (("here", 0.0), ("there", 0.0), ("here", 1.0))
    ]
    grouped = data[0].grouped(np.array([0, 0]))
    assert data[0].contents == data[1].contents == grouped.contents != data[2].contents


def test_groups_of_long_numbers_are_two_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []
    for place, name in enumerate(("a", "b")):
        table = {key: value[: 2 * POINTS] for key, value in rows(place, place).items()}
        table["target"] = [f"1234567890123456789{each}" for each in table["target"]]
        table["point_id"] = [f"{each:04d}" for each in table["point_id"]]
        folders.append(run(tmp_path / name, "score", table))
    result = compared(capsys, *folders)
    assert {(row.shared_targets, row.shared_points) for row in result.table} == {(2, POINTS)}


def test_audits_of_a_file_that_was_written_anew_are_not_paired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def toy_audit(out: str, seed: int) -> str:
        drawing = np.random.default_rng(seed)
        labels = np.arange(200) % 4
        inputs = drawing.normal(size=(200, 8)).astype(np.float32)
        file = tmp_path / "d.npz"
        np.savez(file, inputs=inputs, labels=labels)
        values = {"data.name": f"npz:{file}", "compute.workers": 0, "compute.store": str(tmp_path / "store")}
        data_of.cache_clear()  # a process reads a data set once
        audited(load_plan(kind_named("toy").default_plan, values=values), tmp_path / out)
        return str(tmp_path / out)

    first, anew = toy_audit("a", 1), toy_audit("b", 2)
    capsys.readouterr()
    result = compared(capsys, first, anew)
    assert {(row.paired, row.shared_points) for row in result.table} == {("nothing", 0)}
    prints = [json.loads(Path(folder, "result.json").read_text())["fingerprints"] for folder in (first, anew)]
    assert prints[0]["data"] != prints[1]["data"] and prints[0]["members"] == prints[1]["members"]
