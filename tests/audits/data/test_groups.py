"""Groups of points: read, refused in one line, and dealt whole."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audits.arrays import Ids
from audits.data.catalogue import Dataset, load
from audits.data.groups import Part, check_groups, deal, halves, numbered, read_groups, write_groups
from audits.data.ids import Points
from audits.data.points import arrays_of
from audits.data.shards import read_shards, write_shards
from audits.data.user import checked
from audits.errors import BadInput
from tests.cases.families import as_one
from tests.cases.small_data_sets import small_dataset


@st.composite
def dealt(draw: st.DrawFn) -> tuple[Ids, list[Part], Ids, int]:
    """Return ids, parts that they surely fill, the group of every point, and a seed."""
    parts = [
        Part(f"split.{place}", 2 * draw(st.integers(0, 12)) if halved else draw(st.integers(0, 20)), halved)
        for place, halved in enumerate(draw(st.lists(st.booleans(), min_size=1, max_size=4)))
    ]
    most = draw(st.integers(1, 6))
    count = sum(part.size for part in parts) + 4 * most * len(parts)
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(count), rng.integers(1, most + 1, count))[:count])
    return 3 * np.arange(count), parts, np.repeat(groups, 3), seed


@given(dealt())
@settings(max_examples=30)
def test_parts_have_their_sizes_and_share_no_group_and_halves_are_even(
    case: tuple[Ids, list[Part], Ids, int],
) -> None:
    ids, parts, groups, seed = case
    *found, left = deal(ids, parts, groups, np.random.default_rng(seed))
    assert [len(one) for one in found] == [part.size for part in parts]
    everything = np.concatenate([*found, left])
    assert len(np.unique(everything)) == len(everything) and np.isin(everything, ids).all()
    owners: dict[int, int] = {}
    for place, one in enumerate([*found, left]):
        for group in set(groups[one].tolist()):
            assert owners.setdefault(group, place) == place
    for part, one in zip(parts, found, strict=True):
        if part.halved and part.size:
            first = halves(groups[one], np.random.default_rng(seed))
            assert first.sum() == len(one) // 2
            assert not set(groups[one][first].tolist()) & set(groups[one][~first].tolist())
            assert sorted(np.bincount(groups[one][first])[np.unique(groups[one][first])]) == sorted(
                np.bincount(groups[one][~first])[np.unique(groups[one][~first])]
            )


def test_groups_of_every_size_are_dealt_to_every_part_alike() -> None:
    groups = np.concatenate([np.arange(60), np.repeat(np.arange(60, 72), 5)])
    share = np.zeros(2)
    for seed in range(300):
        first, second, _ = deal(np.arange(120), [Part("a", 40), Part("b", 40)], groups, np.random.default_rng(seed))
        share += [(groups[one] >= 60).mean() for one in (first, second)]
    assert np.abs(share / 300 - 0.5).max() < 0.04  # s.e. .006; large groups first would give .8 and .4


def test_what_a_border_cuts_off_is_used_nowhere() -> None:
    groups = np.repeat(np.arange(10), 4)
    first, second, left = deal(np.arange(40), [Part("a", 6), Part("b", 6)], groups, np.random.default_rng(0))
    assert len(first) == len(second) == 6 and len(left) == 40 - 2 * 8


def test_too_few_points_and_too_large_groups_are_refused() -> None:
    groups = np.repeat(np.arange(10), 4)
    parts = [*([Part("split.a", 17)] * 2), Part("split.b", 5)]
    with pytest.raises(BadInput, match=r"40 points in 10 groups do not fill 34 × split\.a, 5 × split\.b .*split\.b"):
        deal(np.arange(40), parts, groups, np.random.default_rng(0))
    with pytest.raises(BadInput, match=r"a group has 4 points, more than half of split\.b holds \(3 points\); divide"):
        check_groups(np.arange(40), groups, [Part("split.a", 4), Part("split.b", 6, halved=True)])
    with pytest.raises(BadInput, match="3 groups of 2 points cannot be halved"):
        halves(np.repeat(np.arange(3), 2), np.random.default_rng(0))


def test_groups_are_not_written_as_csv_under_the_name_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"groups\.parquet would hold CSV.*\.csv"):
        write_groups(str(tmp_path / "groups.parquet"), np.arange(3))
    write_groups(str(tmp_path / "groups.csv"), np.array([0, 1, 0]))
    assert read_groups(str(tmp_path / "groups.csv"), Points(3)).tolist() == [0, 1, 0]


def test_names_of_groups_do_not_count_and_a_file_says_what_a_function_says(tmp_path: Path) -> None:
    data, names = small_dataset(6), ["p1", "p2", "p1", "p3", "p2", "p3"]
    lines = [f"{place},{name}" for place, name in enumerate(names)]
    (tmp_path / "groups.csv").write_text("\n".join(["id,group,comment", *(f"{line},x" for line in reversed(lines))]))
    pq.write_table(pa.table({"id": list(range(6)), "group": [7, 5, 7, 1, 5, 1]}), tmp_path / "groups.parquet")
    wanted = [0, 1, 0, 2, 1, 2]
    for name in ("groups.csv", "groups.parquet"):
        assert read_groups(str(tmp_path / name), Points(6)).tolist() == wanted
    own = checked("python:own:data", (data.inputs, data.labels, names))
    assert own.groups is not None and own.groups.tolist() == wanted
    plain = checked("python:own:data", (data.inputs, data.labels))
    assert own.fingerprint == plain.grouped(np.array(wanted)).fingerprint != plain.fingerprint == own.contents
    assert checked("python:own:data", own).fingerprint == own.fingerprint
    assert plain.grouped(np.arange(6)).fingerprint != own.fingerprint


def test_shards_hold_the_points_and_not_their_groups(tmp_path: Path) -> None:
    data = small_dataset(6)
    write_shards(data.grouped(np.array([0, 0, 1, 1, 2, 2])), str(tmp_path / "shards"))
    assert read_shards("again", str(tmp_path / "shards")).fingerprint == data.fingerprint


@as_one(
    "text, says",
    [
        ("id,group\n0,a\n1,a\n", r"has no group for point 2 \(1 such point\); give each of 3 points one line"),
        ("id,group\n0,a\n1,a\n1,b\n", "has id 1 twice"),
        ("id,group\n0,a\n1,a\n3,b\n", r"has id 3 .*allowed: 0 to 2"),
        ("id,group\n0,a\n1,a\nx,b\n", "has 'x' in place 3"),
        (f"id,group\n0,a\n1,a\n{'9' * 5000},b\n", "are outside"),
        ("id,group\n0,a\n1,\n2,b\n", r"has no group for point 1 \(it is empty or missing\)"),
        ("point,patient\n0,a\n", "has the columns point, patient; needed: id and group"),
        ("", "is empty"),
    ],
)
def test_files_that_do_not_say_a_group_for_each_point_are_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "groups.csv").write_text(text)
    with pytest.raises(BadInput, match=says) as caught:
        read_groups(str(tmp_path / "groups.csv"), Points(3))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["absent.csv", "absent.parquet", "broken.parquet"])
def test_files_that_cannot_be_read_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.parquet").write_text("id,group\n")
    with pytest.raises(BadInput, match=r"cannot be read: .*; give a CSV or Parquet file") as caught:
        read_groups(str(tmp_path / name), Points(3))
    assert "\n" not in str(caught.value)


@as_one(
    "groups, says",
    [
        ([1, 2], r"groups have shape \(2,\); needed: \(3,\)"),
        ([1.0, 2.0, float("nan")], "point 0 is '1.0', of type float"),
        (["a", None, "b"], "no group for point 1"),
        ([[1], [2, 3], [4]], "one whole number or name a point"),
        ([True, False, True], "of type bool"),
        ([1, "1", 2], "1 both as a number and as text"),
        (["a", "", "b"], "no group for point 1"),
    ],
)
def test_groups_that_a_function_returns_are_checked(groups: object, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        numbered("python:own:data", groups, 3)


MISSING_ELSEWHERE = ("NA", "nan", "None", "null", "N/A", "<NA>")
NAMES = st.one_of(
    st.sampled_from(["1", "01", "1.0", "+1", "1e0", " 1", "1 ", "True", "true", *MISSING_ELSEWHERE, " ", "a", "A"]),
    st.integers(2**53 - 2, 2**53 + 2).map(str),
    st.integers(10**19, 10**19 + 3).map(str),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=2, max_size=6), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_texts_are_the_same_groups_by_every_way_in_and_none_merge(
    tmp_path: Path, names: list[str], encoding: str
) -> None:
    wanted, count = [list(dict.fromkeys(names)).index(name) for name in names], len(names)
    order = list(reversed(range(count)))
    with (tmp_path / "groups.csv").open("w", encoding=encoding, newline="") as file:
        rows = [["id", "group"], *([place, names[place]] for place in order)]
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    pq.write_table(pa.table({"group": [names[place] for place in order], "id": order}), tmp_path / "groups.parquet")
    np.savez(tmp_path / "data.npz", inputs=np.zeros((count, 2)), labels=np.arange(count) % 2, groups=np.array(names))
    ways = {
        "csv": read_groups(str(tmp_path / "groups.csv"), Points(count)),
        "parquet": read_groups(str(tmp_path / "groups.parquet"), Points(count)),
        "npz": load(f"npz:{tmp_path / 'data.npz'}").groups,
        "list": numbered("own", names, count),
        "objects": numbered("own", np.array(names, object), count),
        "arrays": arrays_of((np.zeros((count, 2)), np.arange(count) % 2, names))[2],
    }
    assert {way: found.tolist() for way, found in ways.items() if found is not None} == dict.fromkeys(ways, wanted)


def test_a_missing_group_is_refused_alike_by_every_way_in(tmp_path: Path) -> None:
    columns = {
        "text": pa.array(["a", None, "NA"]),
        "view": pa.array(["a", None, "NA"], pa.string_view()),
        "dictionary": pa.array(["a", None, "NA"]).dictionary_encode(),
        "whole": pa.array([1, None, 2]),
        "nan": pa.array([1.0, float("nan"), 2.0]),
        "empty": pa.array(["a", "", "NA"]),
    }
    for name, column in columns.items():
        pq.write_table(pa.table({"id": [2, 1, 0], "group": column}), tmp_path / f"{name}.parquet")
    (tmp_path / "empty.csv").write_text("id,group\n2,a\n1,\n0,NA\n")
    arrays = {"texts": np.array(["a", "", "NA"]), "numbers": np.array([np.nan, np.nan, np.nan])}
    for name, groups in arrays.items():
        np.savez(tmp_path / f"{name}.npz", inputs=np.zeros((3, 2)), labels=np.arange(3) % 2, groups=groups)
    ways: dict[str, Callable[[], object]] = {
        **{file: partial(read_groups, str(tmp_path / file), Points(3)) for file in ("empty.csv", "text.parquet",
           "view.parquet", "dictionary.parquet", "empty.parquet")},
        "texts.npz": partial(load, f"npz:{tmp_path / 'texts.npz'}"),
        "list": partial(numbered, "own", ["a", None, "NA"], 3),
        "nan": partial(numbered, "own", ["a", float("nan"), "NA"], 3),
        "objects": partial(numbered, "own", np.array(["a", None, "NA"], object), 3),
        "pandas": partial(numbered, "own", pd.Series(["a", None, "NA"]), 3),
        "nullable": partial(numbered, "own", pd.Series(["a", None, "NA"], dtype="string"), 3),
        "categories": partial(numbered, "own", pd.Categorical(["a", None, "NA"]), 3),
        "parts": partial(arrays_of, (np.zeros((3, 2)), np.arange(3) % 2, ["a", None, "NA"])),
    }  # fmt: skip
    for way, read in ways.items():
        with pytest.raises(BadInput, match="has no group for point 1 ") as caught:
            read()
        assert "NA" not in str(caught.value), way
    for name in ("whole.parquet", "nan.parquet"):
        with pytest.raises(BadInput, match=r"point (1|0) "):
            read_groups(str(tmp_path / name), Points(3))
    with pytest.raises(BadInput, match="no group for point 0"):
        load(f"npz:{tmp_path / 'numbers.npz'}")


@settings(max_examples=40)
@given(numbers=st.lists(st.integers(-2, 2) | st.integers(2**62, 2**66), min_size=2, max_size=6))
def test_whole_numbers_of_any_width_do_not_merge(numbers: list[int]) -> None:
    wanted = [list(dict.fromkeys(numbers)).index(number) for number in numbers]
    assert numbered("own", numbers, len(numbers)).tolist() == wanted
    assert numbered("own", list(map(str, numbers)), len(numbers)).tolist() == wanted


def test_points_of_groups_are_called_by_name_as_well(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("group,id\np1,b.png\np2,./a.png\np1,2\n")
    names = Points(3, lambda: ["a.png", "b.png", "c.png"])
    assert read_groups(str(tmp_path / "groups.csv"), names).tolist() == [0, 1, 1]


def test_groups_of_a_data_set_are_checked() -> None:
    data = small_dataset(6)
    with pytest.raises(BadInput, match=r"groups are int64 of shape \(5,\); needed: int64 of shape \(6,\)"):
        Dataset("mine", data.inputs, data.labels, data.classes, (0.0, 1.0), groups=np.arange(5))
