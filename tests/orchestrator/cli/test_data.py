"""``orch data shard`` and ``verify``: image files into tar files, everything else into Parquet, and what is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.audits.data.test_image_folders import image_folder
from tests.audits.data.test_imagenet import write_imagenet


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder with no store named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)


def test_images_are_packed_verified_and_used_in_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    write_imagenet(Path("ilsvrc"))
    command = ["data", "shard", "imagenet?size=8", "packed", "--root", "ilsvrc", "--points", "5", "--workers", "1"]
    assert main(command) == 0
    seen = capsys.readouterr()
    assert seen.out == "wrote 3 shards to packed; use it as data.name: shards:packed\n"
    assert seen.err.splitlines() == [
        "packing 12 images into packed",
        *(f"{done} of 3 shards are there" for done in (1, 2, 3)),
    ]
    assert main(command) == 0
    assert capsys.readouterr().err == "packing 12 images into packed\n"
    assert main(["data", "verify", "packed"]) == 0
    assert capsys.readouterr().out == "packed: 12 images in 3 shards, all as they were written\n"
    assert main(["data", "verify", "packed", "--decode"]) == 0
    assert capsys.readouterr().out == "packed: 12 images in 3 shards, all as they were written and readable\n"
    shard = Path("packed/images-00002.tar")
    shard.write_bytes(shard.read_bytes()[::-1])
    assert main(["data", "verify", "packed"]) == 2
    assert "1 of 3 shards are damaged, first images-00002.tar" in capsys.readouterr().err


def test_pixels_and_other_points_go_into_parquet_files(capsys: pytest.CaptureFixture[str]) -> None:
    image_folder(Path("animals"))
    assert main(["data", "shard", "folder:animals", "pixels", "--pixels"]) == 0
    assert main(["data", "shard", "digits", "digits"]) == 0
    assert "data.name: parquet:digits" in capsys.readouterr().out
    assert main(["data", "verify", "pixels"]) == main(["data", "verify", "digits"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pixels: 4 points, all as they were written",
        "digits: 1797 points, all as they were written",
    ]
    Path("digits/part-00000.parquet").write_bytes(b"")
    assert main(["data", "verify", "digits"]) == 2
    assert main(["data", "verify", "nowhere"]) == 2


@pytest.mark.parametrize("pixels", [[], ["--pixels"]])
def test_what_is_not_packed_is_said(pixels: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    image_folder(Path("animals"))
    Path("animals/cat/moving.gif").touch()
    assert main(["data", "shard", "folder:animals", "packed", "--workers", "1", *pixels]) == 0
    assert capsys.readouterr().err.count(".gif 1") == 1


def test_images_are_packed_into_folders_only(capsys: pytest.CaptureFixture[str]) -> None:
    image_folder(Path("animals"))
    assert main(["data", "shard", "folder:animals", "s3://bucket/animals"]) == 2
    assert "add --pixels, or name a folder" in capsys.readouterr().err
    Path("file").touch()
    assert main(["data", "shard", "folder:animals", "file/packed"]) == 2
    assert "file/packed cannot be written" in capsys.readouterr().err
