"""Data sets that the suite knows to be refused, from the tables in which they stand, as plans name them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from audits.data.cifar import CIFAR10
from audits.data.shards import pack
from tests.audits.data import (
    test_caltech_flowers,
    test_catalogue,
    test_cifar,
    test_class_folders,
    test_hostile_images,
    test_idx_files,
    test_image_folders,
    test_image_shards,
    test_imagenet,
    test_imdb,
    test_lfs_pointers,
    test_own_data,
    test_tables,
    test_text_tables,
)  # fmt: skip
from tests.cases.refusals import Refused, rows
from tests.cases.small_data_sets import small_dataset, write_idx_set
from tests.orchestrator.toy.kind import KIND as TOY

Write = Callable[[Path], None]
"""Leaves the files of a data set in a folder of its own."""


def data_sets() -> Iterator[tuple[str, str, Write]]:
    """Yield names of data sets as seen from their own folder, what is said of them, and what writes them there."""
    for name, said in rows(test_catalogue.test_names_that_cannot_be_used_give_one_line):
        yield name, said, nothing
    yield from image_folders()
    yield from authors_files()
    yield from shards()
    for make, options, said in test_tables.NO_TABLES:
        yield f"table:t.parquet{options}", said, lambda place, make=make: pq.write_table(make(), place / "t.parquet")
    for columns, said in rows(test_tables.test_numbers_that_float32_cannot_hold_are_refused):
        table = test_tables.pa.table({**columns, "label": test_tables.Y})
        yield "table:t.parquet", said, lambda place, table=table: pq.write_table(table, place / "t.parquet")
    for what, name in POINTERS.items():
        yield name, "git lfs pull", in_file(test_lfs_pointers.READERS[what][0], test_lfs_pointers.POINTER.encode())


def few_data_sets() -> Iterator[tuple[str, str, Write]]:
    """Yield the same of data sets that are compared by one command alone."""
    yield from planted_folders()
    for name, said in rows(test_own_data.test_archives_that_cannot_be_read_are_refused_in_one_line):
        yield name, said, test_own_data.archived
    zipped = test_lfs_pointers.READERS["zipped idx"][0]
    pointer = test_lfs_pointers.POINTER.encode()
    yield "mnist", "git lfs pull", lambda place: (write_zipped(place) / zipped).write_bytes(pointer) and None


POINTERS = {"a table": "table:t.parquet", "a folder of tables": "table:.", "arrays of points": "npz:a.npz"}
"""Pointers of Git LFS where a data set should be, by the names of their table."""
RETURNING = """\
from tests.audits.data.test_own_data import test_what_a_users_function_returns_is_checked as table
from tests.cases.refusals import rows
def returning(row):
    return lambda: row[0]
for number, row in enumerate(rows(table)):
    globals()[f"data{number}"] = returning(row)
"""


def nothing(place: Path) -> None:
    """Leave no file."""


def in_file(name: str, content: bytes) -> Write:
    """Return what writes one file."""
    return lambda place: (place / name).write_bytes(content) and None


def image_folders() -> Iterator[tuple[str, str, Write]]:
    """Yield folders of images."""
    for empty, said in rows(test_image_folders.test_folders_without_classes_or_images_are_refused):
        yield "folder:animals" if empty else "folder:.", said, lambda place, empty=empty: write_emptied(place, empty)
    for files, _ in rows(test_class_folders.test_parts_of_a_set_are_no_classes):
        yield "folder:.", "parts of a data set", lambda place, files=files: test_class_folders.plant(place, *files)
    for name, content in test_hostile_images.BOMBS.items():
        yield "folder:images", "more than 64 megapixels", lambda place, each=(name, content): write_pair(place, *each)
    pointer = test_lfs_pointers.POINTER.encode()
    yield "folder:images", r"1\.png.*git lfs pull", lambda place: write_pair(place, "1.png", pointer)


def planted_folders() -> Iterator[tuple[str, str, Write]]:
    """Yield folders that are refused for how they lie, or for one image."""
    for (links,) in rows(test_class_folders.test_links_in_a_circle_are_refused):
        yield "folder:root", "a circle", lambda place, links=links: test_class_folders.linked(place, links) and None
    yield "folder:.", r"deep\.tif has more than 8 bits", test_class_folders.deep
    yield "folder:.", "holds 1 class folder;", lambda place: test_class_folders.plant(place, "a/0.png") and None
    yield "imagenet", "train/ and val/ each hold one folder", lambda place: (place / "train").mkdir()
    yield "imagenet", "holds the class n09999999", test_imagenet.write_another_class
    for name, write, file in CUT:
        yield name, f"image .*{re.escape(file)} cannot be read", cutting(write, file)


CUT: tuple[tuple[str, Write, str], ...] = (
    ("imagenet?size=16", lambda place: test_imagenet.write_imagenet(place) and None, "n01440764_2.JPEG"),
    ("folder:animals", lambda place: test_image_folders.image_folder(place / "animals", "png") and None, "30.png"),
)
"""Sets of images, one of which is damaged behind its header."""


def cutting(write: Write, file: str) -> Write:
    """Return what writes a set, and then cuts the end of one of its files off."""

    def both(place: Path) -> None:
        write(place)
        (damaged,) = place.rglob(file)
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[: len(whole) - 40])

    return both


def write_emptied(place: Path, empty: str) -> None:
    """Write two classes of images, of which the one that is named is then emptied."""
    if empty:
        for file in (test_image_folders.image_folder(place / "animals") / empty).iterdir():
            file.unlink()


def write_pair(place: Path, name: str, content: bytes) -> None:
    """Write the same file into the folders of two classes."""
    for folder in ("a", "b"):
        (place / "images" / folder).mkdir(parents=True)
        (place / "images" / folder / name).write_bytes(content)


def authors_files() -> Iterator[tuple[str, str, Write]]:
    """Yield sets in the layouts of their authors, one file of which is wrong."""
    for labels, parts, said in rows(test_caltech_flowers.test_tables_that_do_not_fit_together_are_refused):
        yield (
            "flowers102",
            said,
            lambda place, each=(labels, parts): test_caltech_flowers.write_flowers(place, each[0], **each[1]) and None,
        )
    for content, said in rows(test_caltech_flowers.test_tables_that_are_no_tables_are_named):
        yield "flowers102", said, replacing(test_caltech_flowers.write_flowers, "flowers-102/imagelabels.mat", content)
    pickles = f"{CIFAR10.python_layout}/data_batch_2"
    for content, said in rows(test_cifar.test_damaged_pickles_are_refused_on_one_line):
        yield "cifar10", said, replacing(write_cifar, pickles, content)
    for (length,) in rows(test_cifar.test_binary_files_of_the_wrong_length_are_refused):
        file = f"{CIFAR10.binary_layout}/test_batch.bin"
        yield (
            "cifar10",
            "a multiple of 3073",
            replacing(lambda place: test_cifar.write_binary(CIFAR10, place), file, bytes(length)),
        )
    for content, said in rows(test_idx_files.test_damaged_idx_files_are_refused):
        yield "mnist", said, replacing(write_mnist, "mnist/train-images-idx3-ubyte", content)
    pointer = test_lfs_pointers.POINTER.encode()
    yield "mnist", "git lfs pull", replacing(write_mnist, "mnist/train-labels-idx1-ubyte", pointer)
    yield "cifar10", "git lfs pull", replacing(write_cifar, pickles, pointer)


def replacing(write: Callable[[Path], object], file: str, content: bytes) -> Write:
    """Return what writes a set, and then another file in the place of one of its own."""

    def both(place: Path) -> None:
        write(place)
        (place / file).write_bytes(content)

    return both


def write_cifar(place: Path) -> None:
    """Write a small CIFAR-10."""
    test_cifar.write_pickles(CIFAR10, place)


def write_zipped(place: Path) -> Path:
    """Write a small MNIST in compressed files; return their folder."""
    write_idx_set(place / "mnist", compress=True)
    return place / "mnist"


def write_mnist(place: Path) -> None:
    """Write a small MNIST."""
    write_idx_set(place / "mnist")


def shards() -> Iterator[tuple[str, str, Write]]:
    """Yield shards that are damaged; what only a verification of all bytes shows is left out."""
    for damage, said, noticed_by in rows(test_image_shards.test_every_damage_is_told_in_a_line):
        if noticed_by == "load":
            yield "shards:s", said, lambda place, damage=damage: damage(write_shards(place)) and None
    for change, said in rows(test_image_shards.test_a_manifest_that_does_not_fit_is_refused):
        if "fingerprint" in change:
            continue
        yield "shards:s", said, lambda place, change=change: write_manifest(write_shards(place), change)
    yield "parquet:cut.parquet", "cannot be read", in_file("cut.parquet", pack(small_dataset())[:-20])


def write_shards(place: Path) -> Path:
    """Copy the shards that lie beside ``place``, which are made once; return their folder."""
    made = place.parent / "shards"
    if not made.exists():
        images = test_imagenet.write_imagenet(place.parent / "ilsvrc")
        test_image_shards.packed(test_image_shards.NAME, images, made)
    return Path(shutil.copytree(made, place / "s"))


def write_manifest(folder: Path, change: dict[str, object]) -> None:
    """Change what shards say of themselves."""
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))


FEW = (TOY.default_plan, "split={targets: 1, train_size: 1}")
"""A plan of two points, which any data set has."""


def of_data() -> Iterator[Refused]:
    """Yield plans of data sets that are refused, and of tables of groups."""
    plan, split = FEW
    for number, (name, said, _) in enumerate(data_sets()):
        yield Refused("toy", plan, (f"data.name={name}", f"data.root=set-{number}", split), said, "data")
    for number, (name, said, _) in enumerate(few_data_sets()):
        changes = (f"data.name={name}", f"data.root=few-{number}", split)
        yield Refused("toy", plan, changes, said, "data", ("validate",))
    for name, said in rows(test_imdb.test_what_cannot_be_is_refused_in_one_line):
        yield Refused("toy", plan, (f"data.name={name}", "data.root=imdb", split), said, "data")
    for number, (_, said) in enumerate(rows(test_own_data.test_what_a_users_function_returns_is_checked)):
        name = f"data.name=python:returning:data{number}"
        yield Refused("toy", plan, (name, "data.root=returning", split), said, "data")
    for name, said in rows(test_own_data.test_errors_of_a_users_module_are_one_line):
        yield Refused("toy", plan, (f"data.name={name}", "data.root=returning", split), said, "data", ("validate",))
    for changes in (("data.name=imdb:aclImdb?vocabulary=pointer.csv", "data.root=imdb"), ("data.groups=pointer.csv",)):
        yield Refused("toy", plan, (*changes, split), "git lfs pull", "data", ("validate",))
    for number, (_, parts) in enumerate(rows(test_text_tables.test_what_is_no_such_table_is_refused)):
        said = "".join(f"(?=.*{re.escape(part)})" for part in parts)
        yield Refused("toy", plan, (f"data.groups=text-{number}.csv", split), said, "data")


def write_data_sets(folder: Path) -> None:
    """Leave the files of these plans, each data set in a folder of its own."""
    for kind, sets in (("set", data_sets()), ("few", few_data_sets())):
        for number, (*_, write) in enumerate(sets):
            (folder / f"{kind}-{number}").mkdir(parents=True)
            write(folder / f"{kind}-{number}")
    test_imdb.write_reviews(folder / "imdb")
    test_imdb.write_odd_lists(folder / "imdb")
    (folder / "returning").mkdir()
    (folder / "returning" / "returning.py").write_text(RETURNING)
    (folder / "returning" / "own_points.py").write_text(test_own_data.OWN)
    for place in (folder, folder / "imdb"):
        (place / "pointer.csv").write_text(test_lfs_pointers.POINTER)
    for number, (content, _) in enumerate(rows(test_text_tables.test_what_is_no_such_table_is_refused)):
        (folder / f"text-{number}.csv").write_bytes(content)
