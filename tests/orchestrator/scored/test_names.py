"""Names of targets and points stay apart, by whichever format they come in."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audits.data.text_tables import text_of, text_table
from audits.errors import BadInput
from audits.statistics.judged import Judged
from orchestrator.scored.attacks import Attack, together
from orchestrator.scored.columns import Part
from orchestrator.scored.layouts import privacy_meter, sacro
from orchestrator.scored.names import encoded, names
from orchestrator.scored.tabular import of_arrays, of_json

LOOKALIKES = ("1", "01", "1.0", "+1", "-1", "1e3", "1000", "NA", "nan", "None", " a", "a", "a ", "12345678901234567890",
              "12345678901234567891", "é", "true", "a,b", 'q"q')  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(LOOKALIKES),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n", exclude_categories=["Cs"]), min_size=1),
)


def read(table: pa.Table) -> list[str]:
    found, missing = names(Part(table, "table", "member", {}), "name")
    return [found.word(int(code)) if not gone else "" for code, gone in zip(found.codes, missing, strict=True)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, min_size=2, max_size=12))
def test_names_are_read_alike_by_every_way_in(tmp_path: Path, said: list[str]) -> None:
    for separator in (",", "\t"):
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=separator).writerows([["name", "x"], *([each, "1"] for each in said)])
        file = tmp_path / "table"
        file.write_text(text.getvalue(), encoding="utf-8", newline="")
        assert read(text_table(file, "table", separator)) == said
    for value in ([{"name": each} for each in said], {"name": said}):
        assert read(of_json(json.loads(json.dumps(value)), tmp_path).pick(["name"])) == said
    column = pa.array(said)
    for kind in (column, column.cast(pa.large_string()), column.dictionary_encode(), column.cast(pa.binary())):
        pq.write_table(pa.table({"name": kind}), tmp_path / "table.parquet")
        assert read(pq.read_table(tmp_path / "table.parquet")) == said
    assert read(of_arrays({"name": np.array(said)}, tmp_path).pick(["name"])) == [str(each) for each in np.array(said)]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8))
def test_whole_numbers_are_their_digits(said: list[int]) -> None:
    assert read(pa.table({"name": pa.array(said, pa.uint64())})) == [str(each) for each in said]


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


def test_names_of_files_and_groups_do_not_collide() -> None:
    def one(said: list[str]) -> Attack:
        named = encoded(pa.array(said))
        return Attack(Judged("base", "a", np.zeros(2), np.array([True, False]), named.codes), named)

    found = together([("a/b", one(["c", "d"])), ("a", one(["b/c", "e"]))])
    assert len(set(found.targets.words.to_pylist())) == 4
