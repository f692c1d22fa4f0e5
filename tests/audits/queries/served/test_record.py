"""Recorded answers: whole files only, many writers, found again by the input's bytes, shape and dtype."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from audits.errors import BadInput
from audits.queries.served import record as record_file
from audits.queries.served.keys import input_keys
from audits.queries.served.oracles import recorded_labels
from audits.queries.served.record import JOINED, Record, identity, recorded

READING = {"classes": 4, "gives": "labels", "class_names": None, "decimals": None}
WRITER = """
import os, signal, sys
from audits.queries.served import record
record.JOINED = 8
kept = record.Record.open(sys.argv[1], {"served": "x"}, {"classes": 4})
name = sys.argv[2].encode()
for batch in range(record.JOINED + 3):
    kept.add([name + batch.to_bytes(14, "big") + bytes([row]) for row in range(2)], [batch, "label"])
replace = os.replace
os.replace = lambda *paths, **folders: os.kill(os.getpid(), signal.SIGKILL)
kept.add([name + bytes(15)], [0])
"""


def opened(root: Path, served: str = "x", reading: dict[str, Any] = READING) -> Record:
    return Record.open(root, {"served": served}, reading)


def keys_of(count: int, seed: int = 0) -> list[bytes]:
    return input_keys(torch.randn(count, 3, generator=torch.Generator().manual_seed(seed)))


def parts(root: Path) -> list[str]:
    return sorted(path.name.split("-")[0] for path in root.rglob("*.parquet") if not path.name.startswith("."))


def test_keys_tell_bytes_shapes_and_dtypes_apart() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(2, 2, 3)
    assert input_keys(x) == input_keys(x.clone().requires_grad_())
    assert input_keys(x.movedim(0, 2).contiguous().movedim(2, 0)) == input_keys(x)
    others = [x.flatten(1), x.reshape(2, 3, 2), x.double(), x.to(torch.int32), x + 1e-6, -x]
    assert len({key for other in (x, *others) for key in input_keys(other)}) == 14
    assert all(len(key) == 16 for key in input_keys(x))
    assert len(input_keys(torch.zeros(2, 0))) == 2 and input_keys(torch.zeros(0, 2)) == []


def test_answers_come_back_as_they_were_given(tmp_path: Path) -> None:
    answers = [3, "cat", [0.1, 1 / 3, 5e-324], {"ä": 0.5}]
    keys = keys_of(4)
    opened(tmp_path).add(keys, answers)
    again = opened(tmp_path)
    assert again.answers(reversed(keys)) == answers[::-1]
    assert again.missing([*keys, b"0" * 16, b"1" * 16, b"0" * 16]) == [b"0" * 16, b"1" * 16]


@pytest.mark.long
def test_writers_that_are_killed_lose_the_batch_in_flight_and_disturb_nobody(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "ab"]
    reader = opened(tmp_path)
    while any(writer.poll() is None for writer in writers):
        reader.refresh()  # also while files are joined
        with contextlib.suppress(subprocess.TimeoutExpired):
            writers[0].wait(0.01)
    assert [writer.returncode for writer in writers] == 2 * [-signal.SIGKILL]
    wanted = [
        name.encode() + batch.to_bytes(14, "big") + bytes([row])
        for name in "ab"
        for batch in range(8 + 3)
        for row in range(2)
    ]
    for found in (reader, opened(tmp_path)):
        found.refresh()
        assert found.missing([*wanted, b"a" + bytes(15)]) == []  # batch 0, row 0 was there before
        assert found.answers(wanted[:4]) == [0, "label", 1, "label"]
    assert parts(tmp_path) == 6 * ["batch"] + 2 * ["joined"]
    assert len(list(tmp_path.rglob(".tmp-*"))) == 2


def test_a_listing_that_is_out_of_date_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = opened(tmp_path), opened(tmp_path)
    for batch in range(JOINED - 1):
        writer.add([batch.to_bytes(16, "big")], [batch])
    listed = os.listdir

    def late(folder: Path) -> list[str]:
        names = listed(folder)
        if len(names) == JOINED:  # the batches and endpoint.json
            writer.add([JOINED.to_bytes(16, "big")], [JOINED])
        return names

    monkeypatch.setattr(record_file.os, "listdir", late)
    reader.refresh()
    assert len(reader.missing(batch.to_bytes(16, "big") for batch in range(JOINED + 1))) == 1  # none is JOINED − 1
    assert parts(tmp_path) == ["joined"]


def test_a_record_says_whose_it_is_and_one_folder_may_hold_several(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.add(keys_of(1), [2])
    about = json.loads((first.folder / "endpoint.json").read_text())
    assert about == {"version": 1, "endpoint": {"served": "x"}, "reading": READING}
    x = torch.randn(1, 1, 3, generator=torch.Generator().manual_seed(0))
    assert recorded_labels(tmp_path).ask(x, torch.zeros(1).long().numpy()).tolist() == [[2]]
    second = opened(tmp_path, "y")
    assert second.folder.name == identity({"served": "y"}) != first.folder.name
    with pytest.raises(BadInput, match=r"answers of 2 endpoints; .*: x; .*: y|: y; .*: x"):
        recorded(tmp_path)
    assert recorded(first.folder).answers(keys_of(1)) == [2]
    opened(tmp_path, reading={**READING, "classes": 2})
    with pytest.raises(BadInput, match=r"the record holds the label 2; labels are 0…1"):
        recorded_labels(first.folder).ask(x, torch.zeros(1).long().numpy())


def test_what_is_no_record_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no recorded answers"):
        recorded(tmp_path / "nowhere")
    kept = opened(tmp_path)
    (kept.folder / "endpoint.json").write_text('{"version": 2}')
    for attempt in (lambda: opened(tmp_path), lambda: recorded(tmp_path).about()):
        with pytest.raises(BadInput, match="is of another version than 1"):
            attempt()
    (kept.folder / "endpoint.json").write_text("{")
    with pytest.raises(BadInput, match=r"endpoint\.json cannot be read"):
        opened(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written: Not a directory; choose another folder"):
        opened(tmp_path / "file")


@pytest.mark.parametrize("damage", ["cut", "other columns"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    kept = opened(tmp_path)
    kept.add(keys_of(2), [1, 2])
    (file,) = kept.folder.glob("*.parquet")
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-9])
    else:
        pq.write_table(pa.table({"key": ["a"]}), file)
    with pytest.raises(BadInput, match=rf"{file.name} is damaged, or no part of a record; remove it"):
        opened(tmp_path)
    file.unlink()
    assert opened(tmp_path).missing(keys_of(2)) == keys_of(2)
