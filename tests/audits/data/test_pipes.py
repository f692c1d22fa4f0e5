"""A pipe or a device under the name of a file is refused wherever data and models are read, and nobody waits for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from audits.data.bounded import array_within, arrays_within, json_within, table_within
from audits.data.catalogue import describe, load
from audits.data.id_lists import read_list
from audits.data.image_shards import verify
from audits.data.shard_manifest import MANIFEST
from audits.errors import BadInput
from audits.models.bert import check_sizes
from audits.queries.served.reading import Reading
from audits.queries.served.record import read_part, recorded
from audits.targets.checkpoint_files import read_held
from audits.targets.folders import weight_files
from audits.targets.forms import form_of, is_torchscript
from audits.targets.recorded import check_columns
from orchestrator.engine.given_files import digest_of

pytestmark = pytest.mark.timeout(120)
KINDS = ("pipe", "link", "device")


@pytest.fixture(params=["pipe", *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS[1:])])
def odd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return what makes a pipe, a link to one, or one to a device without end."""
    monkeypatch.chdir(tmp_path)

    return lambda name: made(request.param, name)


def made(kind: str, name: str) -> Path:
    """Make it in the working folder."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    if kind == "device":
        Path(name).symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(name)
    else:
        os.mkfifo("a pipe")
        Path(name).symlink_to(Path("a pipe").resolve())
    return Path(name)


SETS = {
    "table:x.parquet": "x.parquet",
    "table:set": "set/a.parquet",
    "parquet:x.parquet": "x.parquet",
    "parquet:set": "set/a.parquet",
    "npz:x.npz": "x.npz",
    "text:x.csv": "x.csv",
    "folder:set": "set/a/x.png",
    "shards:set": f"set/{MANIFEST}",
}


@pytest.mark.parametrize("name", SETS)
def test_data_sets(name: str, odd: Callable[[str], Path]) -> None:
    odd(SETS[name])
    with suppress(BadInput):
        describe(name)
    with pytest.raises(BadInput):
        load(name)


@pytest.mark.parametrize("file", ["data.arrow", "state.json", "dataset_dict.json"])
def test_a_data_set_that_datasets_saved(file: str, odd: Callable[[str], Path]) -> None:
    odd(f"set/{file}")
    if file == "data.arrow":
        Path("set/state.json").write_text(json.dumps({"_data_files": [{"filename": file}]}))
    with pytest.raises(BadInput):
        load("table:set")


READERS: dict[str, Callable[[Path], object]] = {
    "x.parquet": lambda path: table_within(path, str(path)),
    "x.npz": lambda path: arrays_within(path, str(path)),
    "x.npy": lambda path: array_within(path, str(path)),
    "x.json": lambda path: json_within(path, str(path)),
    "ids.csv": lambda path: read_list(str(path), "ids"),
    "answers.parquet": lambda path: check_columns(str(path), Reading(2)),
    "model.pt": lambda path: read_held(path, str(path)),
    "model.safetensors": lambda path: read_held(path, str(path)),
    "model": lambda path: digest_of(str(path)),
    "model-00001-of-00001.safetensors": lambda path: digest_of(str(path)),
    "model.safetensors.index.json": lambda path: weight_files(path.parent, "it"),
    "record/x.parquet": lambda path: digest_of(str(path.parent)),
    "part.parquet": read_part,
    "record/endpoint.json": lambda path: recorded(path.parent),
    "bert/config.json": lambda path: check_sizes(path.parent, {}),
    f"shards/{MANIFEST}": lambda path: verify(path.parent),
}


@pytest.mark.parametrize("name", READERS)
def test_files(name: str, odd: Callable[[str], Path]) -> None:
    path = odd(name)
    with pytest.raises(BadInput) as caught:
        READERS[name](path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_links_to_pipes_and_to_devices_are_refused_as_pipes_are(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x.json", "x.parquet", "model.pt", "model"):
        (tmp_path / f"of {name}").mkdir()
        monkeypatch.chdir(tmp_path / f"of {name}")
        with pytest.raises(BadInput):
            READERS[name](made(kind, name))


@pytest.mark.parametrize("name", ["x.pt", "x", "x.ts"])
def test_the_form_of_a_model(name: str, odd: Callable[[str], Path]) -> None:
    odd(name)
    assert is_torchscript(name) == name.endswith(".ts")
    assert form_of(name) == ("torchscript" if name.endswith(".ts") else "weights")
