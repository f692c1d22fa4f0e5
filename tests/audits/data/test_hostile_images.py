"""Image files are anybody's bytes: too many pixels, a file cut short or garbled is one line that names the file."""

from __future__ import annotations

import io
import os
import struct
import zlib
from io import BufferedReader
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from audits.data import regular
from audits.data.catalogue import describe, load
from audits.data.images import MOST_PIXELS, decode
from audits.errors import BadInput
from tests.cases.families import as_one, thinned

LAYOUTS = {
    "folder:.": ("a/0.png", "b/0.png", "a/x.png"),
    "imdb:.": ("train/pos/0_9.txt", "train/neg/0_1.txt", "test/pos/0_9.txt", "test/neg/0_1.txt", "train/pos/1_9.txt"),
}

FORMATS = {"png": "PNG", "jpg": "JPEG", "pgm": "PPM", "bmp": "BMP", "webp": "WEBP", "tif": "TIFF", "gif": "GIF"}


def png(width: int, height: int) -> bytes:
    """Return a PNG of some bytes whose header tells of ``width`` × ``height`` grey pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


BOMBS = {
    "just too large.png": png(8001, 8000),
    "warned of.png": png(12000, 10000),
    "huge.png": png(60000, 60000),
    "grey.pgm": b"P5 8001 8000 255\n\0",
    "huge.pgm": b"P5 60000 60000 255\n\0",
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device"])
def test_a_pipe_or_a_device_in_place_of_a_file_keeps_nobody_waiting(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in LAYOUTS[name]:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        if file == LAYOUTS[name][-1]:
            break
        Path(file).write_text("a word") if file.endswith("txt") else Image.new("L", (8, 8)).save(file)
    if kind == "device":
        os.symlink("/dev/zero", file)
    else:
        os.mkfifo(file if kind == "pipe" else "pipe")
        if kind != "pipe":
            os.symlink(tmp_path / "pipe", file)
    with pytest.raises(BadInput, match=Path(file).name):
        load(name)


@pytest.mark.filterwarnings("ignore:Image size")
@as_one("name", BOMBS)
def test_an_image_of_too_many_pixels_is_refused_by_its_header(name: str, tmp_path: Path) -> None:
    assert MOST_PIXELS == 64_000_000
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(BOMBS[name])
    for read in (lambda: describe(f"folder:{tmp_path}"), lambda: load(f"folder:{tmp_path}?size=8")):
        with pytest.raises(BadInput, match=r"more than 64 megapixels, .*scale it down, or remove it") as caught:
            read()
        assert str(tmp_path / "a" / name) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="more than 64 megapixels"):
        decode(tmp_path / "a" / name, (1, 8, 8))


def test_an_image_of_as_many_pixels_as_allowed_is_opened(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(png(8000, 8000))
    with pytest.raises(BadInput, match="cannot be read"):  # for its pixels are missing
        decode(tmp_path / "x.png", (1, 8, 8))


@pytest.mark.parametrize("suffix", thinned(FORMATS, ("png", "jpg", "tif")))
def test_a_file_cut_short_or_garbled_is_read_or_refused_in_one_line(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (16, 16), dtype=np.uint8)).save(whole, FORMATS[suffix])
    content = whole.getvalue()
    cut = [content[:length] for length in np.linspace(0, len(content) - 1, 40).astype(int)]
    garbled = []
    for _ in range(150):
        broken = bytearray(content)
        for place in rng.integers(0, min(len(broken), 80), 3):
            broken[place] = rng.integers(0, 256)
        garbled.append(bytes(broken))
    refused = []
    for number, some in enumerate([*cut, *garbled]):
        file = tmp_path / f"{number}.{suffix}"
        file.write_bytes(some)
        try:
            assert decode(file, (1, 16, 16)).shape == (1, 16, 16)
        except BadInput as error:
            refused.append((str(file), str(error)))
    assert len(refused) >= 30
    assert all(file in said and "\n" not in said for file, said in refused)


@pytest.mark.timeout(60)
def test_what_is_read_is_what_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, look = tmp_path / "x.png", regular.opened
    Image.new("L", (8, 8), 7).save(file)

    def exchanged(found: Path) -> BufferedReader:
        stream = look(found)
        file.unlink()
        os.mkfifo(file)
        return stream

    monkeypatch.setattr(regular, "opened", exchanged)
    assert (decode(file, (1, 8, 8)) == 7).all()
