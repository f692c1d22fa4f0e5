"""What was found in files is remembered, and forgotten with the least change of any of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from audits.data import file_sets, images, remembered
from audits.data.catalogue import load
from audits.data.remembered import folder
from tests.audits.data.test_imagenet import CLASSES, write_imagenet

FIRST = f"train/{CLASSES[0]}/{CLASSES[0]}_0.JPEG"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve images of three classes, which count as settled at once, on a machine that remembers."""
    monkeypatch.setenv("ORCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remembered, "SETTLED", -(10**18))
    return write_imagenet(tmp_path / "ilsvrc")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files of which ends or headers were read."""
    names: list[str] = []
    facts, header = file_sets.Facts.of_file, images.header

    def watched_facts(file: Path) -> file_sets.Facts:
        names.append(file.name)
        return facts(file)

    def watched_header(file: Path) -> tuple[tuple[int, int], int]:
        names.append(file.name)
        return header(file)

    monkeypatch.setattr(file_sets.Facts, "of_file", staticmethod(watched_facts))
    monkeypatch.setattr(images, "header", watched_header)
    monkeypatch.setattr(images, "MOST_BYTES", 0)
    return names


@pytest.mark.parametrize("name", ["imagenet?size=16", "folder:train?size=16"])
def test_files_are_read_once(name: str, root: Path, read: list[str]) -> None:
    first = load(name, root)
    files = set(read)
    assert len(files) == len(first)
    read.clear()
    second = load(name, root)
    assert read == [] and (second.fingerprint, second.shape) == (first.fingerprint, first.shape)
    assert load(name.replace("16", "9"), root).fingerprint != first.fingerprint and read == []


def touched(file: Path) -> None:
    """Write the same bytes again, and set the times back."""
    before = file.stat()
    file.write_bytes(file.read_bytes())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def exchanged(file: Path) -> None:
    """Put other bytes of the same length and time in the place of a file."""
    before, content = file.stat(), bytearray(file.read_bytes())
    content[2000:2010] = bytes(10)
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        touched,
        exchanged,
        lambda file: os.utime(file, ns=(0, 0)),
        lambda file: file.write_bytes(file.read_bytes() + b"x"),
        lambda file: file.rename(file.with_name("a.JPEG")),
        lambda file: shutil.copyfile(file, file.with_name("more.JPEG")),
        lambda file: file.unlink(),
    ],
    ids=["touched", "exchanged", "time", "longer", "renamed", "one more", "one less"],
)
def test_any_change_is_noticed(change, root: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    load("imagenet?size=16", root)
    read.clear()
    change(root / FIRST)
    found = load("imagenet?size=16", root).fingerprint
    assert read != []
    monkeypatch.setenv("ORCH_CACHE", "")
    assert load("imagenet?size=16", root).fingerprint == found


def test_labels_are_part_of_the_question(root: Path) -> None:
    names = ("a", "b")
    for name in names:
        (root / name).write_bytes(name.encode())
    found = remembered.remembered("one", root, names, lambda: 1)
    assert [remembered.remembered(question, root, names, lambda: 2) for question in ("one", "two")] == [found, 2]
    assert remembered.remembered("one", root, names[::-1], lambda: 3) == 3


def test_a_file_that_changed_a_moment_ago_is_not_believed(
    root: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "SETTLED", 3600 * 10**9)
    load("imagenet?size=16", root)
    read.clear()
    load("imagenet?size=16", root)
    assert len(read) == 12


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"state": 3})])
def test_a_damaged_note_is_written_anew(content: str, root: Path, read: list[str]) -> None:
    before = load("imagenet?size=16", root).fingerprint
    (note,) = (root.parent / "cache").iterdir()
    whole = note.read_text()
    note.write_text(content)
    assert load("imagenet?size=16", root).fingerprint == before
    assert note.read_text() == whole and len(read) == 24


def test_where_nothing_can_be_kept_all_is_read(root: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "file").touch()
    for place in ("", str(root / "file" / "cache")):
        monkeypatch.setenv("ORCH_CACHE", place)
        read.clear()
        assert [load("imagenet?size=16", root).fingerprint for _ in range(2)] and len(read) == 24


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert folder() == Path("/somewhere/orch")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert folder() == Path.home() / ".cache" / "orch"
