"""Files that Git LFS has not fetched: each reader names LFS and the command that fetches them, whatever it reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from audits.data.bounded import array_within, arrays_within, json_within, table_within
from audits.data.catalogue import describe, load
from audits.data.cifar import CIFAR10
from audits.data.id_lists import read_list
from audits.data.idx import read_idx
from audits.data.images import opened_as
from audits.data.text import vocabulary_from
from audits.data.text_tables import text_table
from audits.errors import BadInput
from audits.queries.served.reading import Reading
from audits.targets.recorded import check_columns
from audits.targets.weights import read_weights
from audits.training import transfer
from tests.cases.families import as_one

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n"
)

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "weights": ("w.pt", lambda file: read_weights(str(file), nn.Linear(2, 2))),
    "safetensors": ("w.safetensors", lambda file: read_weights(str(file), nn.Linear(2, 2))),
    "a folder of weights": ("model.safetensors", lambda file: read_weights(str(file.parent), nn.Linear(2, 2))),
    "weights of a teacher": ("w.pth", transfer.read_weights),
    "a table": ("t.parquet", lambda file: load(f"table:{file}")),
    "a folder of tables": ("t.parquet", lambda file: load(f"table:{file.parent}")),
    "Parquet": ("t.parquet", lambda file: table_within(file, str(file))),
    "recorded answers": ("t.parquet", lambda file: check_columns(str(file), Reading(2))),
    "ids in Parquet": ("ids.parquet", lambda file: read_list(str(file), str(file))),
    "ids in text": ("ids.txt", lambda file: read_list(str(file), str(file))),
    "CSV": ("t.csv", lambda file: text_table(file, str(file))),
    "JSON": ("r.json", lambda file: json_within(file, str(file))),
    "an array": ("a.npy", lambda file: array_within(file, str(file))),
    "arrays": ("a.npz", lambda file: arrays_within(file, str(file))),
    "arrays of points": ("a.npz", lambda file: load(f"npz:{file}")),
    "an image": ("i.png", lambda file: opened_as(file, "L")),
    "an encoded image": ("i.png", lambda file: opened_as(Path("row 0"), "L", file.read_bytes())),
    "idx": ("train-images-idx3-ubyte", read_idx),
    "CIFAR": ("data_batch_1.bin", CIFAR10.part),
    "zipped idx": ("train-images-idx3-ubyte.gz", read_idx),
    "words": ("vocab.txt", vocabulary_from),
}


@as_one("what", READERS)
def test_a_pointer_is_named_as_one(tmp_path: Path, what: str) -> None:
    name, read = READERS[what]
    (tmp_path / name).write_text(POINTER)
    with pytest.raises(BadInput, match="git lfs pull") as refused:
        read(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_folder_of_images_names_the_image(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_text(POINTER)
    with pytest.raises(BadInput, match=r"1\.png.*git lfs pull"):
        describe(f"folder:{tmp_path}")


def test_a_text_that_speaks_of_git_lfs_is_no_pointer(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("git-lfs\nversion\n")
    assert vocabulary_from(tmp_path / "words.txt").words == ("git-lfs", "version")
