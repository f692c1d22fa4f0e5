"""Every data set, from small files where it is not embedded: whole, read-only, the same twice, and as described."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audits.conformance.data import CHECKS, DataCase
from audits.data.catalogue import CATALOGUE, describe, encoded, load
from audits.data.cifar import CIFAR10, CIFAR100
from audits.data.sharding import write_image_shards
from audits.data.shards import write_shards
from audits.errors import BadInput
from tests.audits.data.test_caltech_flowers import write_caltech, write_flowers
from tests.audits.data.test_cifar import write_binary
from tests.audits.data.test_image_folders import image_folder
from tests.audits.data.test_imagenet import write_imagenet
from tests.audits.data.test_imdb import REVIEWS
from tests.cases.families import as_one
from tests.cases.small_data_sets import small_dataset, write_idx_set


def embedded(name: str) -> Callable[[Path], str]:
    return lambda root: name


def own_function(root: Path) -> str:
    (root / "contract_points.py").write_text(
        "import numpy as np\ndef points():\n    return np.arange(12.0).reshape(6, 2), np.array([0, 1, 2] * 2)\n"
    )
    sys.modules.pop("contract_points", None)
    return "python:contract_points:points"


def reviews(root: Path) -> str:
    for name, text in REVIEWS.items():
        (root / "aclImdb" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "aclImdb" / name).write_text(text, "utf-8")
    return f"imdb:{root}?length=4"


def shards(root: Path) -> str:
    found = encoded("imagenet?size=8", write_imagenet(root / "imagenet"))
    assert found is not None
    write_image_shards(found, root / "packed", per_shard=5)
    return "shards:packed"


def after(write: Callable[[Path], object], name: str) -> Callable[[Path], str]:
    """Return what writes a set below a folder and returns its name."""

    def made(root: Path) -> str:
        write(root)
        return name

    return made


def write_table(root: Path) -> None:
    pq.write_table(pa.table({"inputs": np.eye(6).tolist(), "label": [0, 1] * 3}), root / "own.parquet")


MADE: dict[str, Callable[[Path], str]] = {
    "caltech101": after(lambda root: write_caltech(root / "caltech101"), "caltech101?size=8"),
    "cifar10": after(lambda root: write_binary(CIFAR10, root), "cifar10"),
    "cifar100": after(lambda root: write_binary(CIFAR100, root), "cifar100"),
    "digits": embedded("digits"),
    "fashion-mnist": after(lambda root: write_idx_set(root / "fashion-mnist"), "fashion-mnist"),
    "fashion14": embedded("fashion14"),
    "flowers102": after(write_flowers, "flowers102?size=8"),
    "folder": after(lambda root: image_folder(root / "animals"), "folder:animals"),
    "imagenet": after(write_imagenet, "imagenet?size=8"),
    "imdb": reviews,
    "mnist": after(lambda root: write_idx_set(root / "mnist", compress=True), "mnist"),
    "parquet": after(lambda root: write_shards(small_dataset(), str(root / "shards")), "parquet:shards"),
    "npz": after(lambda root: np.savez(root / "own.npz", inputs=np.eye(6), labels=[0, 1] * 3), "npz:own.npz"),
    "python": own_function,
    "shards": shards,
    "table": after(write_table, "table:own.parquet"),
    "toy2d": embedded("toy2d"),
}
PUBLISHED = ("cifar10", "cifar100", "fashion-mnist", "mnist")
"""Sets whose size is known without looking; here they are cut short."""


def test_every_registered_data_set_is_here() -> None:
    assert set(MADE) == set(CATALOGUE)


@pytest.mark.parametrize("source", CATALOGUE)
def test_every_set_keeps_to_the_checks_and_has_as_many_points_as_its_description_says(
    source: str, tmp_path: Path
) -> None:
    name = MADE[source](tmp_path)
    root = None if source in ("digits", "fashion14", "toy2d") else tmp_path
    for check in CHECKS:
        check(DataCase(name, root))
    told, data = describe(name, root), load(name, root)
    assert told.points in (0, len(data)) or (source in PUBLISHED and told.points > len(data))
    with pytest.raises(ValueError, match="read-only"):
        data.labels[0] = 1


@as_one("source", sorted(set(CATALOGUE) - {"digits", "fashion14", "toy2d"}))
def test_a_set_that_is_not_there_or_is_asked_for_oddly_is_refused_in_a_line(source: str, tmp_path: Path) -> None:
    name = {
        "folder": "folder:x",
        "imdb": "imdb:x",
        "npz": "npz:x",
        "parquet": "parquet:x",
        "python": "python:no_such:points",
        "shards": "shards:x",
        "table": "table:x",
    }
    for given in (name.get(source, source), f"{name.get(source, source)}?no_such_option=1"):
        with pytest.raises(BadInput) as caught:
            load(given, tmp_path)
        assert "\n" not in str(caught.value)
