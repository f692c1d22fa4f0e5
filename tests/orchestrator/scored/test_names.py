"""Names of targets and points stay apart, by whichever format they come in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from audits.data.text_tables import text_of, text_table
from audits.errors import BadInput
from audits.statistics.judged import Judged
from orchestrator.scored.attacks import Attack, together
from orchestrator.scored.columns import Part
from orchestrator.scored.files import read_arrays, read_json
from orchestrator.scored.layouts import privacy_meter, sacro
from orchestrator.scored.names import encoded, names
from orchestrator.scored.tabular import of_arrays, of_json

LOOKALIKES = ("1", "01", "1.0", "+1", "-1", "1e3", "1000", "NA", "nan", "None", " a", "a", "a ", "12345678901234567890",
              "12345678901234567891", "é", "true", "a,b", 'q"q')  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(LOOKALIKES),
    st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(["\r", "\n", "\r\n", "a\nb", "a\r\nb", "a\n", "\ra", "\n,", '"\n"', "\u2028", "\x0b"]),
)


def read(table: pa.Table) -> list[str]:
    found, missing = names(Part(table, "table", "member", {}), "name")
    return [found.word(int(code)) if not gone else "" for code, gone in zip(found.codes, missing, strict=True)]


def read_text_table(file: Path, separator: str) -> list[str]:
    return read(text_table(file, "table", separator))


def ways_of_text(folder: Path, said: list[str]) -> Iterator[Callable[[], list[str]]]:
    """Yield what reads names from every kind of file but arrays."""
    for separator in (",", "\t"):
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=separator).writerows([["name", "x"], *([each, "1"] for each in said)])
        file = folder / "table"
        file.write_text(text.getvalue(), encoding="utf-8", newline="")
        yield partial(read_text_table, file, separator)
    for value in ([{"name": each} for each in said], {"name": said}):
        (folder / "table.json").write_text(json.dumps(value), encoding="utf-8")
        yield lambda: read(of_json(read_json(folder / "table.json"), folder).pick(["name"]))
    column = pa.array(said)
    for kind in (column, column.cast(pa.large_string()), column.dictionary_encode(), column.cast(pa.binary())):
        pq.write_table(pa.table({"name": kind}), folder / "table.parquet")
        yield lambda: read(pq.read_table(folder / "table.parquet"))


def read_array(folder: Path, said: list[str]) -> list[str]:
    """Return names as read from an array, which has no zero bytes at the end of a name."""
    np.savez(folder / "table.npz", name=np.array(said))
    return read(of_arrays(read_arrays(folder / "table.npz"), folder).pick(["name"]))


@pytest.mark.parametrize("examples", [15, pytest.param(60, marks=pytest.mark.long)])
def test_names_are_read_alike_by_every_way_in(tmp_path: Path, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.lists(NAMES, min_size=2, max_size=12))
    @example(list(LOOKALIKES))
    def alike(said: list[str]) -> None:
        for way in ways_of_text(tmp_path, said):
            assert way() == said
        assert read_array(tmp_path, said) == said

    alike()


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, min_size=1, max_size=4), NAMES, NAMES)
def test_names_with_a_zero_byte_are_refused_by_every_way_in(
    tmp_path: Path, said: list[str], before: str, behind: str
) -> None:
    odd = [*said, f"{before}\0{behind}"]
    for way in chain(ways_of_text(tmp_path, odd), [lambda: read_array(tmp_path, odd)]):
        with pytest.raises(BadInput, match="zero bytes"):
            way()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8))
def test_whole_numbers_are_their_digits(said: list[int]) -> None:
    assert read(pa.table({"name": pa.array(said, pa.uint64())})) == [str(each) for each in said]


@given(st.lists(st.integers(-(10**30), 10**30), min_size=2, max_size=8, unique=True))
@example([-(10**20) - 1, -(10**20), -5, 3, 10**20, 10**20 + 1])
def test_whole_numbers_stand_in_their_order(said: list[int]) -> None:
    found = encoded(pa.array([str(each) for each in said])).words.to_pylist()
    assert found == [str(each) for each in sorted(said)]


@pytest.mark.long
@given(st.lists(NAMES, min_size=1, max_size=12, unique=True), st.randoms())
def test_order_of_rows_does_not_matter(said: list[str], random: Any) -> None:
    other = random.sample(said, len(said))
    assert encoded(pa.array(said)).words.to_pylist() == encoded(pa.array(other)).words.to_pylist()


def test_arrays_of_several_targets_are_refused(tmp_path: Path) -> None:
    arrays = {"scores": np.zeros((3, 4)), "memberships": np.zeros((3, 4)), "fpr": np.zeros(2), "tpr": np.zeros(2)}
    with pytest.raises(BadInput, match="shape"):
        privacy_meter.parts(arrays, tmp_path / "attack_result_0.npz")


def test_two_attacks_of_one_name_in_one_report_stay_apart(tmp_path: Path) -> None:
    told = {"individual": {"member_prob": [["0.1"], ["0.9"]], "member": ["0", "1"]}}
    attack = {
        "metadata": {"attack_name": "lira"},
        "attack_experiment_logger": {"attack_instance_logger": {"instance_0": told}},
    }
    found = sacro.parts({"lira_1": attack, "lira_2": attack}, tmp_path / "report.json")
    assert [list(part.scores) for part in found] == [["lira_1"], ["lira_2"]]


def test_latin_1_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("é".encode("latin-1"))
    with pytest.raises(BadInput, match="Latin-1"):
        text_of(tmp_path / "t.csv", "t")


def test_names_of_files_and_groups_do_not_collide_and_are_the_same_in_any_order() -> None:
    def one(said: list[str], score: float) -> Attack:
        named = encoded(pa.array(said))
        return Attack(Judged("base", "a", np.full(2, score), np.array([True, False]), named.codes), named)

    def told(files: Sequence[tuple[str, Attack]]) -> list[tuple[str, float]]:
        found = together(files)
        return [
            (found.targets.word(int(code)), float(score))
            for code, score in zip(found.judged.target, found.judged.scores, strict=True)
        ]

    files = [("a/b", one(["c", "d"], 1.0)), ("a", one(["b/c", "e"], 2.0)), ("z", one(["0", "0"], 3.0))]
    first = told(files)
    assert len({name for name, _ in first}) == 5
    assert all(told(each) == first for each in permutations(files))
    alone = [each for each in files if each[0] != "a"]
    assert {name for name, _ in told(alone)} == {"a/b/c", "a/b/d", "z"}, "nothing is quoted where nothing collides"
