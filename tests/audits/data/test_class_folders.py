"""Ids of ``folder:`` and ``imagenet`` are those of torchvision's ImageFolder, and what that leaves out is said."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from audits.data.catalogue import describe, encoded, load
from audits.data.class_folders import SUFFIXES, read_class_folders
from audits.data.sharding import write_image_shards
from audits.errors import BadInput
from tests.cases.families import as_one

NAMES = st.text("ab-_. ä0Z", min_size=1, max_size=3).filter(lambda name: set(name) != {"."})
ENDINGS = st.sampled_from(
    [*SUFFIXES, ".JPG", ".Png", ".TIF", ".gif", ".txt", "", ".png.txt", ".jpg.png", ".GIF", "jpg", "."]
)
PLACES = st.lists(NAMES, max_size=3)
TREES = st.sets(st.tuples(st.sampled_from(["a", "b", ".c"]), PLACES.map(tuple), NAMES, ENDINGS), max_size=12)


def plant(root: Path, *files: str) -> Path:
    """Write files of some bytes that are no images."""
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_bytes(b"x")
    return root


def painted(file: Path, mode: str = "L", size: tuple[int, int] = (4, 4), **more: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size).save(file, **more)  # type: ignore[arg-type]  # options of one format


def of_image_folder(root: Path) -> tuple[list[tuple[str, int]], list[str]]:
    """Return what torchvision lists: files below ``root`` and labels, and the classes."""
    from torchvision.datasets import ImageFolder

    found = ImageFolder(root)
    return [(Path(file).relative_to(root).as_posix(), label) for file, label in found.samples], found.classes


def same(root: Path) -> bool:
    found = read_class_folders(root)
    return (list(zip(found.files, found.labels, strict=True)), list(found.classes)) == of_image_folder(root)


def test_endings_are_those_of_torchvision() -> None:
    from torchvision.datasets.folder import IMG_EXTENSIONS

    assert set(SUFFIXES) == set(IMG_EXTENSIONS)


@settings(max_examples=12, deadline=None)
@given(TREES, st.booleans())
def test_any_tree_is_listed_as_by_image_folder(tree: set[tuple[str, tuple[str, ...], str, str]], links: bool) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        plant(root, "a/0.png", "b/0.png")
        for name, place, file, suffix in tree:
            folder = Path(root, name, *place)
            try:
                plant(folder, file + suffix)
            except OSError:  # a file of this name is where the folder would be
                continue
        outside = plant(root / "elsewhere" / "deep", "x/1.png", "2.jpg", "x.tif")
        shutil.move(str(outside.parent), f"{root} elsewhere")
        if links:
            (root / "a" / "-link").symlink_to(Path(f"{root} elsewhere"))
            (root / "linked").symlink_to(Path(f"{root} elsewhere", "deep"))
            (root / "b" / "z.png").symlink_to(root / "a" / "0.png")
        hidden = [name for _, _, names in os.walk(root / ".c") for name in names]
        if not any(name.lower().endswith(SUFFIXES) for name in hidden):
            shutil.rmtree(root / ".c", ignore_errors=True)  # ImageFolder would list nothing at all
        assert same(root)
    finally:
        shutil.rmtree(root)
        shutil.rmtree(f"{root} elsewhere")


@as_one(
    "files",
    [
        ["a/x/1.png", "a/2.png", "a/img_10.png", "a/img_9.png", "a/y.png/1.png", "a/y.png/0.png"],
        ["a/b/1.png", "a/b-c/1.png", "a/b.d/1.png", "a/b0/1.png", "a/b.png"],
        ["a/.ipynb_checkpoints/0-checkpoint.png", "a/0.png", "a/.hidden.png"],
        ["a/photo.TIF", "a/scan.tiff", "a/Z.JPEG", "a/a.webp", "a/é.png", "a/ .png", "a/.jpg", "a/x.gif", "a/x"],
        [".hidden/0.png", "a/0.png"],
    ],
)
def test_files_are_listed_as_by_image_folder(tmp_path: Path, files: list[str]) -> None:
    assert same(plant(tmp_path, *files, "b/0.png"))


def test_names_that_are_no_text_are_listed_as_by_image_folder(tmp_path: Path) -> None:
    plant(tmp_path, "a/0.png", "b/0.png")
    (tmp_path / "a" / os.fsdecode(b"\xff\xe9.png")).write_bytes(b"x")
    assert same(tmp_path)


def linked(place: Path, links: dict[str, str]) -> Path:
    """Write two classes with links in them: name → target; return their folder."""
    root = plant(place / "root", "a/0.png", "b/0.png")
    for link, target in links.items():
        (root / link).symlink_to(target)
    return root


@as_one("links", [{"a/up": ".."}, {"a/self": "."}, {"b/far": "../.."}, {"a/x": "../b", "b/y": "../a"}])
def test_links_in_a_circle_are_refused(tmp_path: Path, links: dict[str, str]) -> None:
    with pytest.raises(BadInput, match=r"/[axby]/\w+.* is a link to .*: a circle"):
        read_class_folders(linked(tmp_path, links))


def test_links_to_another_class_are_followed(tmp_path: Path) -> None:
    assert same(linked(tmp_path, {"a/x": "../b"}))


def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, "a/0.png", "a/locked/1.png", "b/0.png")
    plain = os.scandir

    def scandir(place: str | Path = ".") -> object:
        if str(place).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(place))
        return plain(place)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(BadInput, match="locked cannot be read"):
        read_class_folders(tmp_path)


def test_what_is_left_out_or_may_surprise_is_said_with_counts(tmp_path: Path) -> None:
    for file in ("a/0.png", "a/.b/1.png", "b/0.png", "beside.png"):
        painted(tmp_path / file)
    plant(
        tmp_path, "a/1.gif", "a/2.GIF", "b/notes.txt", "b/Thumbs", "b/odd.a\nb", "b/.DS_Store", ".git/HEAD", "README.md"
    )
    others, beside, empty, hidden = describe(f"folder:{tmp_path}").notes
    assert ".gif 2, no ending 2, .ds_store 1, .txt 1" in others
    assert ": 1 image that" in beside and ": 1 hidden folder without" in empty and "1 of 3 images" in hidden
    assert load(f"folder:{tmp_path}").notes == (others, beside, empty, hidden)
    assert all(line.startswith(f"folder:{tmp_path}: ") for line in (others, beside, empty, hidden))


def test_a_tidy_folder_has_no_notes_and_its_points_have_the_names_of_their_files(tmp_path: Path) -> None:
    for file in ("a/x/1.png", "a/2.png", "b/0.png"):
        painted(tmp_path / file)
    found = load(f"folder:{tmp_path}")
    assert found.notes == () and list(found.names or ()) == ["a/2.png", "a/x/1.png", "b/0.png"]
    files = encoded(f"folder:{tmp_path}")
    assert files is not None
    write_image_shards(files, tmp_path / "shards")
    packed = load(f"shards:{tmp_path / 'shards'}")
    assert list(packed.names or ()) == list(found.names or ()) and (packed.names or ())[1] == "a/x/1.png"
    assert packed.fingerprint == found.fingerprint


def with_orientation(value: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def test_exif_orientation_is_not_applied_as_in_torchvision_and_that_is_said(tmp_path: Path) -> None:
    from torchvision.datasets import ImageFolder

    pixels = np.arange(48, dtype=np.uint8).reshape(6, 8)
    for number, suffix in enumerate(("png", "jpg", "webp", "tif")):
        for name in ("a", "b"):
            (tmp_path / name).mkdir(exist_ok=True)
            how = {"exif": with_orientation(6)} if name == "a" else {"exif": with_orientation(1)}
            Image.fromarray(pixels).save(tmp_path / name / f"{number}.{suffix}", **how)
    (line,) = [note for note in describe(f"folder:{tmp_path}?size=6").notes if "EXIF" in note]
    assert "3 of 8 images" in line  # that of TIFF is applied, by Pillow, whoever reads it
    found = load(f"folder:{tmp_path}?size=6")
    assert line in found.notes
    as_torchvision = [
        image.convert("L").resize((6, 6), Image.Resampling.BILINEAR) for image, _ in ImageFolder(tmp_path)
    ]
    assert np.abs(np.stack(as_torchvision).astype(int) - found.inputs[:, 0]).max() <= 4  # of WebP


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_damaged_exif_does_not_matter(tmp_path: Path) -> None:
    for name in ("a", "b"):
        painted(tmp_path / name / "0.jpg", exif=b"Exif\0\0II*\0\xff\xff\xff\xff garbage")
    assert load(f"folder:{tmp_path}").notes == ()


def test_answers_remembered_by_an_earlier_question_say_nothing_of_orientation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_CACHE", str(tmp_path / "cache"))
    for name in ("a", "b"):
        painted(tmp_path / "set" / name / "0.png", exif=with_orientation(3))
        os.utime(tmp_path / "set" / name / "0.png", (1, 1))
    first, again = (describe(f"folder:{tmp_path / 'set'}").notes for _ in range(2))
    assert first == again and "2 of 2 images" in first[0]


@as_one("compression", [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_tiff_is_read_and_of_several_pages_the_first(tmp_path: Path, compression: str | None) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    first, *more = map(Image.fromarray, pixels)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first.save(tmp_path / "a" / "0.TIF", compression=compression)
    first.save(tmp_path / "b" / "0.tiff", compression=compression, save_all=True, append_images=more)
    found = load(f"folder:{tmp_path}")
    assert (found.inputs == pixels[0].transpose(2, 0, 1)).all()
    (line,) = found.notes
    assert "1 of 2 images" in line and "pages" in line


def test_a_gif_that_is_called_jpg_is_read_as_torchvision_reads_it(tmp_path: Path) -> None:
    from torchvision.datasets import ImageFolder

    for name in ("a", "b"):
        painted(tmp_path / name / "0.jpg", "RGB")
    Image.new("RGB", (4, 4), (200, 0, 0)).save(tmp_path / "a" / "0.jpg", "GIF")
    expected = np.stack([np.asarray(image).transpose(2, 0, 1) for image, _ in ImageFolder(tmp_path)])
    assert (load(f"folder:{tmp_path}").inputs == expected).all()


def deep(root: Path) -> None:
    """Write two classes of images of 16 bits."""
    for name in ("a", "b"):
        (root / name).mkdir()
        Image.fromarray(np.full((4, 4), 40_000, np.uint16)).save(root / name / "deep.tif")


def test_tiff_of_16_bits_is_refused(tmp_path: Path) -> None:
    deep(tmp_path)
    with pytest.raises(BadInput, match=r"deep\.tif has more than 8 bits"):
        load(f"folder:{tmp_path}")


@as_one(
    "files, way_out",
    [
        (["train/cat/0.png", "train/dog/0.png", "val/cat/0.png", "val/dog/0.png"], "folder:{}/train"),
        (["Train/cat/0.png", "TEST/0.png"], "folder:{}/Train"),
        (["training/a/0.png", "validation/a/0.png", "testing/a/0.png"], "folder:{}/testing"),
        (["train2017/a/0.png", "val2017/a/0.png", "annotations/0.png", ".git/HEAD"], "folder:{}/train2017"),
        (["train_set/a/0.png", "test-set/a/0.png", "x/0.png", "y/0.png", "z/0.png"], "folder:{}/test-set"),
        (["train/a/0.png", "train/b/0.png"], "folder:{}/train"),
        (["train/0.png", "test/0.png"], "one folder of images per class"),
        (["testA/0.png", "testB/0.png", "trainA/0.png", "trainB/0.png"], "such as test with the folders A and B in it"),
        (["trainA/horse/0.png", "trainA/foal/0.png", "testA/horse/0.png", "valA/foal/0.png"], "folder:{}/testA"),
        (["seg_train/sea/0.png", "seg_test/sea/0.png", "seg_pred/0.png"], "folder:{}/seg_test"),
    ],
)
def test_parts_of_a_set_are_no_classes(tmp_path: Path, files: list[str], way_out: str) -> None:
    plant(tmp_path, *files)
    with pytest.raises(BadInput, match="parts of a data set") as caught:
        describe(f"folder:{tmp_path}")
    assert str(caught.value).endswith(way_out.format(tmp_path)) and "\n" not in str(caught.value)


@as_one(
    "files",
    [
        ["train/0.png", "car/0.png", "plane/0.png"],
        ["train/steam/0.png", "train/diesel/0.png", "car/0.png"],
        ["train/0.png", "test/0.png", "word/0.png", "term/0.png", "valued/0.png"],
        ["test1/0.png", "test2/0.png"],
        ["trainer/0.png", "valley/0.png"],
        ["bullet_train/a/0.png", "steam_train/a/0.png"],
        ["train/a/0.png", "litmus_test/a/0.png"],
    ],
)
def test_a_class_may_be_called_as_a_part_is(tmp_path: Path, files: list[str]) -> None:
    assert same(plant(tmp_path, *files))


def test_one_of_the_parts_is_read(tmp_path: Path) -> None:
    for file in ("train/cat/0.png", "train/dog/0.png", "val/cat/0.png"):
        painted(tmp_path / file)
    assert load(f"folder:{tmp_path}/train").classes == ("cat", "dog")


def test_imagenet_has_the_ids_of_image_folder_part_by_part(tmp_path: Path) -> None:
    plant(tmp_path, *(f"{part}/n{name}/{file}" for part in ("train", "val") for name in (1, 2) for file in (
        "b/1.JPEG", "a.JPEG", ".x.JPEG", "t.tif", "list.txt",
    )))  # fmt: skip
    parts = [(part, of_image_folder(tmp_path / part)[0]) for part in ("train", "val")]
    found = load("imagenet?size=8", tmp_path)
    names = [(f"{part}/{file}", label) for part, files in parts for file, label in files]
    assert list(zip(found.names or (), found.labels.tolist(), strict=True)) == names and len(names) == 16
    assert any(".txt 2" in note for note in found.notes)


@as_one(
    "files, noted",
    [
        (["Training/a/1", "Training/b/1", "PublicTest/a/1", "PublicTest/b/1", "PublicTest/c/1"], True),
        (["cat/day/1", "cat/night/1", "dog/day/1", "dog/5"], False),
        (["cat/day/1", "dog/day/1"], False),
        (["cat/tabby/1", "cat/siam/1", "dog/pug/1", "dog/husky/1"], False),
    ],
)
def test_class_folders_with_the_same_folders_inside_are_noted(tmp_path: Path, files: list[str], noted: bool) -> None:
    for file in files:
        painted(tmp_path / f"{file}.png")
    notes = [note for note in describe(f"folder:{tmp_path}").notes if "sub-folders of the same names" in note]
    assert len(notes) == noted
    assert all("'a', 'b'" in note and "'Training'" in note for note in notes)


def test_one_of_a_kind_is_told_in_the_singular(tmp_path: Path) -> None:
    plant(tmp_path, "a/0.png", "b/0.png", "beside.png", ".empty/readme", "a/.hidden.png")
    notes = " ".join(read_class_folders(tmp_path).notes())
    for words in ("1 image that is in no class folder is left out", "1 hidden folder", "1 of 3 images is hidden"):
        assert words in notes, notes
    with pytest.raises(BadInput, match="holds 1 class folder;"):
        read_class_folders(plant(tmp_path / "one", "a/0.png"))
