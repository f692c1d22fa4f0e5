"""A data set is read once per process, and again when its files are others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.engine.data import data_of


def write(folder: Path, shift: int) -> None:
    folder.mkdir(exist_ok=True)
    inputs = np.arange(12, dtype=np.float32).reshape(6, 2) + shift
    np.savez(folder / "d.npz", inputs=inputs, labels=np.arange(6) % 2)


@pytest.mark.parametrize("groups", [None, "groups.csv"])
def test_files_that_are_others_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str | None
) -> None:
    (tmp_path / "groups.csv").write_text("id,group\n" + "".join(f"{i},{i % 3}\n" for i in range(6)))
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 0)
    first = data_of("npz:d.npz", None, groups)
    assert data_of("npz:d.npz", None, groups) is first
    write(tmp_path, 1)
    anew = data_of("npz:d.npz", None, groups)
    assert anew.inputs[0, 0] == 1 and anew.fingerprint != first.fingerprint
    write(tmp_path / "elsewhere", 2)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert data_of("npz:d.npz", None).inputs[0, 0] == 2


def test_other_groups_are_read_again(tmp_path: Path) -> None:
    write(tmp_path, 0)
    name, groups = f"npz:{tmp_path / 'd.npz'}", tmp_path / "groups.csv"
    groups.write_text("id,group\n" + "".join(f"{i},{i % 3}\n" for i in range(6)))
    assert data_of(name, None, str(groups)).groups.max() == 2
    groups.write_text("id,group\n" + "".join(f"{i},{i}\n" for i in range(6)))
    assert data_of(name, None, str(groups)).groups.max() == 5
