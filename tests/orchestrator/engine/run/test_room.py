"""Jobs that share a GPU: one that finds no memory is done again alone; where that does not help, one line says so."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from audits.writing import CannotWrite
from benchmarks.pretended import OnDevice, pretended
from orchestrator.cli.main import main
from orchestrator.engine.run import room
from orchestrator.engine.run.room import held, waited_for, with_room

PLAN = ("apollo-smoke", "--workers", "0", "--set", "compute.device=cuda")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Locks of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path / "gate", tmp_path / "room"
    torch.use_deterministic_algorithms(False)


def test_who_wants_to_be_alone_waits_for_those_inside_and_keeps_others_out(place: tuple[Path, Path]) -> None:
    came: list[str] = []

    def come(name: str) -> None:
        with held(place, alone=name == "alone"):
            came.append(name)

    alone, late = (threading.Thread(target=come, args=(name,)) for name in ("alone", "late"))
    with held(place, alone=False):
        come("together")
        assert not waited_for(place)
        alone.start()
        while not waited_for(place):
            assert alone.is_alive()
        late.start()
        late.join(0.5)
        assert came == ["together"]
    for thread in (alone, late):
        thread.join()
    assert came == ["together", "alone", "late"]


def test_work_that_finds_no_memory_beside_others_is_done_again_alone() -> None:
    tried, forgot = [], []

    def work() -> str:
        tried.append(room_is_mine())
        if len(tried) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return "done"

    with pretended():
        assert with_room("cuda", work, lambda: forgot.append(1)) == "done"
    assert tried == [False, True] and forgot == [1]
    with pretended(), pytest.raises(ValueError, match="other"):
        with_room("cuda", lambda: raised(ValueError("other")), lambda: None)
    with pytest.raises(torch.OutOfMemoryError):
        with_room("cpu", lambda: raised(torch.OutOfMemoryError()), lambda: None)


def room_is_mine() -> bool:
    """Say whether the gate is shut: whoever is alone holds it."""
    return waited_for(room.lock_names("cuda"))


def raised(error: Exception) -> None:
    raise error


def test_a_job_that_fits_nowhere_ends_the_run_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pretended(most=40_000):
        assert main(["audit", "apollo", *PLAN, "--out", "out", "--store", "store"]) == 3
        assert OnDevice.room is not None and not OnDevice.room.held, "nothing is left on the device"
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("orch: out of memory: train target-000 (")
    assert "even alone on its GPU: CUDA out of memory. Tried to allocate" in said
    assert "lower the batch size (recipe.batch_size is 32)" in said and "finished models are kept" in said


def test_nobody_waits_for_a_lock_that_another_user_may_hold(
    place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(place, alone=True):
        pass
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CannotWrite, match="another user"), held(place, alone=False):
        pass
