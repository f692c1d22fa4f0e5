"""What a user holds in Python becomes files in a working folder that somebody else may have made, and writes into."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from orchestrator.api.given import FOLDER, data_name, target_section, weights_file
from orchestrator.api.runs import default_folder
from orchestrator.kinds import load_plan

IDS = np.arange(24)


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ORCH_ALLOW_STORES", raising=False)
    return folder


def members() -> Path:
    """Keep ids as a plan names them; return their file."""
    return Path(target_section("model.safetensors", IDS)["members"])


def test_what_is_given_is_for_its_owner_alone() -> None:
    before = os.umask(0)
    try:
        files = [
            members(),
            Path(weights_file(torch.nn.Linear(2, 2))),
            Path(data_name((np.zeros((4, 2), np.float32), np.arange(4) % 2)).removeprefix("npz:")),
        ]
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(FOLDER.stat().st_mode) == 0o700
    assert sorted(file.absolute() for file in FOLDER.iterdir()) == sorted(files)


def test_the_same_content_is_written_once() -> None:
    before = members().stat()
    assert (members().stat().st_ino, members().stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def of_equal_length(file: Path, elsewhere: Path) -> None:
    file.write_bytes(bytes(len(file.read_bytes())))


def a_link_to_a_copy(file: Path, elsewhere: Path) -> None:
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def a_second_name(file: Path, elsewhere: Path) -> None:
    os.link(file, elsewhere)


def open_to_others(file: Path, elsewhere: Path) -> None:
    file.chmod(0o666)


def of_another(file: Path, elsewhere: Path) -> None:
    os.chown(file, 54321, -1) if os.geteuid() == 0 else file.chmod(0o602)


@pytest.mark.parametrize("plant", [of_equal_length, a_link_to_a_copy, a_second_name, open_to_others, of_another])
def test_a_planted_file_is_not_taken_for_what_is_given(plant: Callable[[Path, Path], None], tmp_path: Path) -> None:
    file, elsewhere = members(), tmp_path / "elsewhere"
    content = file.read_bytes()
    plant(file, elsewhere)
    planted = file.lstat().st_ino
    assert members() == file and file.read_bytes() == content
    found = file.lstat()
    assert stat.S_ISREG(found.st_mode) and found.st_ino != planted and found.st_nlink == 1
    assert stat.S_IMODE(found.st_mode) == 0o600 and found.st_uid == os.geteuid()
    assert not elsewhere.exists() or elsewhere.read_bytes() == content


def test_a_pipe_in_place_of_what_is_given_is_refused() -> None:
    file = members()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(BadInput, match=rf"{file.name} cannot be written: it is a pipe"):
        members()


@pytest.mark.parametrize("place", [".orch", ".orch/given"])
@pytest.mark.parametrize("led", ["elsewhere", "nowhere"])
def test_nothing_that_is_given_goes_through_a_link(place: str, led: str, tmp_path: Path) -> None:
    Path(place).parent.mkdir(exist_ok=True)
    (tmp_path / "elsewhere" / "given").mkdir(parents=True)
    Path(place).symlink_to(tmp_path / led)
    with pytest.raises(BadInput, match=rf"{place} cannot be written: it is a link"):
        members()
    assert [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()] == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("whose", ["all's", "another's"])
def test_a_folder_that_others_can_change_holds_nothing_that_is_given(
    whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could exchange a model or its members between two lines of a script; as with stores, the user decides."""
    FOLDER.mkdir(parents=True)
    if whose == "another's" and os.geteuid() == 0:
        os.chown(FOLDER, 54321, -1)
    else:
        FOLDER.chmod(0o777)
    with pytest.raises(BadInput, match=rf"^{FOLDER.absolute()}.*ORCH_ALLOW_STORES={FOLDER.absolute()}$"):
        members()
    assert not list(FOLDER.iterdir())
    monkeypatch.setenv("ORCH_ALLOW_STORES", str(FOLDER.absolute()))
    assert members().is_file()


@pytest.mark.parametrize("above", [FOLDER.parent, Path()])
def test_nor_does_one_that_lies_in_such_a_folder(above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could put another folder in its place."""
    FOLDER.parent.mkdir()
    above.chmod(0o777)
    with pytest.raises(BadInput, match=rf"chmod go-w {above.absolute()}, .*ORCH_ALLOW_STORES={FOLDER.absolute()}$"):
        members()
    assert not list(FOLDER.iterdir())
    monkeypatch.setenv("ORCH_ALLOW_STORES", str(FOLDER.absolute()))
    assert members().is_file()


@pytest.mark.parametrize("place", ["runs", "runs/{name}"])
def test_a_run_without_a_folder_of_its_own_goes_through_no_link(place: str, tmp_path: Path) -> None:
    plan = load_plan("mia-smoke")
    name = default_folder(plan, "mia").name
    link = Path(place.format(name=name))
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path)
    with pytest.raises(BadInput, match=rf"^{link} is a link to {tmp_path}.*out='runs/{name}'$"):
        default_folder(plan, "mia")
