"""What a run leaves in its folder when the disk is full; with a disk: ``tests/long/test_sweeps_on_full_disks.py``."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from audits.errors import BadInput
from orchestrator.engine.run import search_journal
from orchestrator.engine.run.output_folder import PLAN_FILE, claim_folder
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal
from orchestrator.engine.run.trial_ledger import Ledger
from orchestrator.engine.store.faults import StoreFull, StoreSilent
from orchestrator.kinds import load_plan
from tune_spaces.space import Dimension, Search, Space

SEARCH = Search(Space((Dimension("seed", "randint", (0, 1000)),)), "random", 4, None, ("auc",), ("max",))


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_line_that_the_disk_had_no_room_for_leaves_none_of_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    journal.begin()
    journal.note(trial=0, changes={})
    before = journal.file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(search_journal.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            journal.note(trial=1, changes={})
    assert journal.file.read_bytes() == before
    journal.note(trial=0, parts=1)
    assert Journal(journal.file, {"seed": 0}).begin() == [{"trial": 0, "changes": {}}, {"trial": 0, "parts": 1}]


@pytest.mark.parametrize("size", [1, 7, 20])
def test_a_line_that_was_cut_off_is_dropped_wherever_it_was_cut(tmp_path: Path, size: int) -> None:
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    journal.begin()
    journal.note(trial=0, changes={})
    whole = journal.file.read_bytes()
    journal.note(trial=0, parts=2, values=[0.5])
    os.truncate(journal.file, len(whole) + size)
    again = Journal(journal.file, {"seed": 0})
    assert again.begin() == [{"trial": 0, "changes": {}}] and journal.file.read_bytes() == whole
    again.note(trial=1, changes={})
    assert again.begin() == [{"trial": 0, "changes": {}}, {"trial": 1, "changes": {}}]


@pytest.mark.parametrize("size", [0, 5])
def test_a_journal_whose_first_line_was_cut_off_begins_anew(tmp_path: Path, size: int) -> None:
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    journal.begin()
    os.truncate(journal.file, size)
    assert journal.begin() == [] and journal.file.read_text() == '{"search": {"seed": 0}}\n'


@pytest.mark.parametrize(
    ("error", "stuck"), [(StoreFull("full"), True), (StoreSilent("silent"), True), (FileNotFoundError("gone"), False)]
)
def test_no_trial_begins_once_the_store_is_full(tmp_path: Path, error: Exception, stuck: bool) -> None:
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    journal.begin()
    ledger = Ledger(SEARCH, 4, 1, journal, None, lambda trial: {"jobs": str(trial.number)}, lambda trial: None)
    first, second = ledger.ask(), ledger.ask()
    assert first and second
    ledger.failed(0, error)
    assert ledger.hear(1, {"parts": 1, "numbers": {"auc": 0.5}, "seconds": 1.0})  # one that runs comes to its end
    assert (ledger.ask() is None) == stuck
    again = Ledger(SEARCH, 4, 1, journal, None, ledger.describe, ledger.tell)
    again.go_on(journal.begin())
    assert again.ask() == first


@pytest.mark.parametrize(
    ("raised", "error"), [(errno.ENOSPC, OSError), (errno.EDQUOT, OSError), (errno.EROFS, BadInput)]
)
def test_a_folder_without_room_keeps_its_plan_and_is_not_to_blame(
    tmp_path: Path, raised: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = load_plan("apollo-smoke")
    claim_folder(tmp_path, plan)
    before = (tmp_path / PLAN_FILE).read_bytes()
    write = os.write

    def half(handle: int, data: bytes) -> int:
        write(handle, data[:9])
        raise OSError(raised, os.strerror(raised))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(error, match=os.strerror(raised)):
            claim_folder(tmp_path, plan.changed({"seed": 1}))
    assert (tmp_path / PLAN_FILE).read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {PLAN_FILE, "orch.log"}
