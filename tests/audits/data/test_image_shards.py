"""Image shards: they stand for the files that they were made of, go on after a kill, and notice every damage."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from audits.data import images, orientation, shard_writer, sharding
from audits.data.catalogue import encoded, load
from audits.data.file_sets import Facts, contents_digest
from audits.data.image_shards import verify
from audits.data.sharding import write_image_shards
from audits.errors import BadInput
from tests.audits.data.test_caltech_flowers import write_caltech, write_flowers
from tests.audits.data.test_imagenet import write_imagenet
from tests.cases.tar_files import with_size

NAME = "imagenet?size=16"
LONG = pytest.mark.long


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twelve images of three classes."""
    return write_imagenet(tmp_path / "ilsvrc")


def packed(name: str, root: Path | None, folder: Path, workers: int = 1, per_shard: int = 5) -> Path:
    """Write the shards of a set of files."""
    found = encoded(name, root)
    assert found is not None
    write_image_shards(found, folder, per_shard=per_shard, workers=workers)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "source",
    ["imagenet", "folder", "small folder", *(pytest.param(name, marks=LONG) for name in ("caltech101", "flowers102"))],
)
def test_shards_read_as_their_files_do(
    source: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_caltech(tmp_path / "caltech101")
    write_flowers(tmp_path)
    name = {"imagenet": f"imagenet:{root}"}.get(source, f"{source}?size=16")
    if "folder" in source:
        name = f"folder:{root / 'train'}?size=16"
        monkeypatch.setattr(images, "MOST_BYTES", 2**30 if source == "small folder" else 0)
    place = root if source == "imagenet" else tmp_path
    name = NAME if source == "imagenet" else name
    folder = packed(name, place, tmp_path / "shards")
    for size in ("", "?size=16", "?size=9"):
        whole, again = load(name.replace("?size=16", size or "?size=16"), place), load(f"shards:{folder}{size}")
        assert (again.fingerprint, again.classes, again.shape) == (whole.fingerprint, whole.classes, whole.shape)
        assert again.in_memory == whole.in_memory == (source == "small folder")
        rows = np.arange(len(whole))[::-1]
        assert torch.equal(again.tensors(rows).x, whole.tensors(rows).x)
        assert torch.equal(again.tensors(rows).y, whole.tensors(rows).y)


def test_images_lie_in_the_tar_files_as_they_were(root: Path, tmp_path: Path) -> None:
    folder = packed(NAME, root, tmp_path / "shards")
    found = {}
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            found |= {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.JPEG")}
    assert found == files and len(found) == 12
    assert sorted(contents(folder)) == [
        *(f"images-0000{number}.tar" for number in range(3)),
        "index.npz",
        "manifest.json",
    ]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=LONG)])
def test_the_same_images_give_the_same_bytes_whoever_writes_them(workers: int, root: Path, tmp_path: Path) -> None:
    alone = packed(NAME, root, tmp_path / "alone")
    shutil.copytree(root, tmp_path / "copy", copy_function=shutil.copyfile)
    together = packed(NAME, tmp_path / "copy", tmp_path / "together", workers)
    assert contents(alone) == contents(together)


KILLED = """
import os, signal, sys
from pathlib import Path
from audits.data import sharding
from audits.data.catalogue import encoded
wrote = sharding.write_part
count = 0
def killed(part):
    global count
    count += 1
    if count == 3:
        (part.folder / ".tmp-9-9").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    return wrote(part)
sharding.write_part = killed
sharding.write_image_shards(encoded("imagenet?size=16", sys.argv[1]), Path(sys.argv[2]), per_shard=3)
"""


def test_after_a_kill_only_what_is_missing_is_written(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shards"
    done = subprocess.run([sys.executable, "-c", KILLED, str(root), str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(BadInput, match="not all written"):
        load(f"shards:{folder}")
    with pytest.raises(BadInput, match="beginning of other shards"):
        packed(NAME, root, folder, per_shard=4)
    read: list[str] = []
    plain = shard_writer._content
    monkeypatch.setattr(shard_writer, "_content", lambda file: read.append(file.name) or plain(file))
    packed(NAME, root, folder, per_shard=3)
    assert len(read) == 6
    assert contents(folder) == contents(packed(NAME, root, tmp_path / "undisturbed", per_shard=3))


PARENT = """
import multiprocessing, os, signal
from concurrent.futures import ProcessPoolExecutor
from audits.data.sharding import end_with_parent
if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), end_with_parent)
    print(pool.submit(os.getpid).result(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long
def test_processes_that_write_shards_end_with_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(  # it returns when nobody holds the pipe any more
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL and done.stdout.strip().isdigit()


@pytest.mark.long
def test_a_shard_whose_images_changed_since_is_written_again(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    subprocess.run([sys.executable, "-c", KILLED, str(root), str(folder)], check=False)
    first = sorted((root / "train").rglob("*.JPEG"))[0]
    first.write_bytes((root / "train" / "n03000000" / "n03000000_1.JPEG").read_bytes())
    packed(NAME, root, folder, per_shard=3)
    assert verify(folder).points == 12
    assert load(f"shards:{folder}").fingerprint == load(NAME, root).fingerprint


def test_shards_that_are_there_are_kept_and_those_of_another_set_refused(root: Path, tmp_path: Path) -> None:
    folder = packed(NAME, root, tmp_path / "shards")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    packed(NAME, root, folder)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    next((root / "train").rglob("*.JPEG")).write_bytes(b"another")
    with pytest.raises(BadInput, match="shards of another set"):
        packed(NAME, root, folder)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "own.txt").touch()
    with pytest.raises(BadInput, match=r"already holds own\.txt"):
        packed(NAME, root, tmp_path / "full")


def test_two_processes_do_not_write_one_folder(root: Path, tmp_path: Path) -> None:
    with sharding._alone(tmp_path / "shards"), pytest.raises(BadInput, match="another process is writing"):
        packed(NAME, root, tmp_path / "shards")
    packed(NAME, root, tmp_path / "shards")


def flipped(file: Path, place: int) -> None:
    """Change one byte of a file."""
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "says", "noticed_by"),
    [
        (lambda folder: flipped(folder / "images-00001.tar", 700), r"1 of 3 shards .*1\.tar: its checksum", "verify"),
        (lambda folder: os.truncate(folder / "images-00001.tar", 1024), "has 1024 bytes instead of", "load"),
        (lambda folder: (folder / "images-00002.tar").unlink(), "images-00002.tar cannot be read", "load"),
        (lambda folder: flipped(folder / "index.npz", 300), "index.npz cannot be read .its checksum", "load"),
        (lambda folder: (folder / "index.npz").unlink(), "index.npz cannot be read", "load"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json cannot be read", "load"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), "is not of the form orch.shards/1", "load"),
    ],
)  # fmt: skip
def test_every_damage_is_told_in_a_line(damage, says: str, noticed_by: str, root: Path, tmp_path: Path) -> None:
    folder = packed(NAME, root, tmp_path / "shards")
    assert verify(folder, decode=True).points == 12
    damage(folder)
    with pytest.raises(BadInput, match=says) as caught:
        verify(folder)
    assert "\n" not in str(caught.value)
    if noticed_by == "load":
        with pytest.raises(BadInput, match=says):
            load(f"shards:{folder}")
    else:
        load(f"shards:{folder}")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rule": "upside down"}, "unknown rule"),
        ({"schema": "orch.shards/2"}, "not of the form"),
        ({"points": 13}, "do not hold its 13 images"),
        ({"shape": [3, 10**6, 10**6]}, "are not read"),
        ({"shape": [3, 4]}, "cannot be read"),
        ({"more": 1}, "cannot be read"),
        ({"shards": [{"file": "../../x.tar", "points": 12, "bytes": 1, "sha256": ""}]}, "outside of its folder"),
        ({"fingerprint": "0" * 64}, "do not have the fingerprint"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(change: dict, says: str, root: Path, tmp_path: Path) -> None:
    folder = packed(NAME, root, tmp_path / "shards")
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(BadInput, match=says) as caught:
        verify(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.timeout(60)
def test_a_shard_that_is_no_tar_file_is_refused_whatever_its_manifest_says(root: Path, tmp_path: Path) -> None:
    folder = packed(NAME, root, tmp_path / "shards")
    file, shard = folder / "manifest.json", folder / "images-00001.tar"
    manifest, length = json.loads(file.read_text()), shard.stat().st_size
    end = with_size(tarfile.TarInfo("x"), -tarfile.BLOCKSIZE)
    for content, says in ((end, "negative size"), (b"no tar file", "tar file")):
        shard.write_bytes(content + bytes(length - len(content)))
        manifest["shards"][1]["sha256"] = shard_writer.sha256_of(shard)
        file.write_text(json.dumps(manifest))
        with pytest.raises(BadInput, match=says):
            verify(folder)


def test_an_index_that_points_outside_of_its_shards_is_refused(root: Path, tmp_path: Path) -> None:
    folder = packed(NAME, root, tmp_path / "shards")
    with np.load(folder / "index.npz") as found:
        index = dict(found)
    for name, value in (("offset", -1), ("length", 10**9), ("shard", 3), ("shard", -1)):
        changed = index | {name: np.where(np.arange(12) == 4, value, index[name]).astype(index[name].dtype)}
        np.savez(folder / "index.npz", **changed)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["index"] = shard_writer.sha256_of(folder / "index.npz")
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(BadInput, match="does not fit the shards"):
            load(f"shards:{folder}")


def test_an_index_with_too_few_names_is_refused(root: Path, tmp_path: Path) -> None:
    folder = packed(NAME, root, tmp_path / "shards")
    with np.load(folder / "index.npz") as found:
        np.savez(tmp_path / "index.npz", **{**found, "id": found["id"][:11]})
    (tmp_path / "index.npz").replace(folder / "index.npz")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["index"] = shard_writer.sha256_of(folder / "index.npz")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="does not fit the shards"):
        verify(folder)


def test_a_damaged_image_is_named_by_its_shard_and_row(root: Path, tmp_path: Path) -> None:
    (root / "train" / "n01440764" / "n01440764_2.JPEG").write_bytes(b"this is no image")
    folder = packed(NAME, root, tmp_path / "shards")
    verify(folder)
    with pytest.raises(BadInput, match=r"images-00000\.tar \(row 2\) cannot be read") as caught:
        verify(folder, decode=True)
    assert "\n" not in str(caught.value)


def test_the_digest_of_the_contents_tells_name_label_length_and_ends_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    content = rng.bytes(10_000)
    (tmp_path / "a").write_bytes(content)
    assert Facts.of_file(tmp_path / "a") == Facts.of(content)
    labels, facts = np.array([0, 1]), [Facts.of(content), Facts.of(content[::-1])]
    base = contents_digest(["a", "b"], labels, facts)
    assert contents_digest(["a", "c"], labels, facts) != base
    assert contents_digest(["a", "b"], labels[::-1], facts) != base
    assert contents_digest(["a", "b"], labels, facts[::-1]) != base
    for changed in (content + b"x", b"x" + content[1:], content[:-1] + b"x"):
        assert contents_digest(["a", "b"], labels, [Facts.of(changed), facts[1]]) != base


@pytest.mark.parametrize("name", ["imagenet", "caltech101", "flowers102"])
def test_an_orientation_that_is_not_applied_is_noted_of_files_and_of_shards(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / name
    {"imagenet": write_imagenet, "caltech101": write_caltech, "flowers102": write_flowers}[name](where)
    before = load(name, where)
    assert before.notes == () and before.names is not None
    exif = Image.Exif()
    exif[0x0112] = 6
    files = [next(tmp_path.rglob(file)) for file in (before.names[0], before.names[-1])]
    for file in files:
        Image.open(file).convert("RGB").save(file, "JPEG", exif=exif)
    shards = f"shards:{packed(name, where, tmp_path / 'packed')}"
    for each in (name, shards):
        (note,) = load(each, where).notes
        assert note.startswith(f"{each}: 2 of {len(before)} images have an EXIF orientation, which is not applied")
    monkeypatch.setattr(orientation, "LOOKED_AT", 3)
    files[0].write_bytes(b"no image: whoever asks for it is told")
    (note,) = load(name, where).notes
    assert note.startswith(f"{name}: 1 of 3 images that were looked at, among {len(before)}, has an EXIF orientation")
