"""The benchmark of loading gives all forms the same work; how fast anything is, no test asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from audits.data.image_shards import encoded_set
from benchmarks import loading
from benchmarks.loading_images import made


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Twelve images, and their shards."""
    return made(tmp_path_factory.mktemp("loading"), 12, 32, cpus=1)


@pytest.mark.long
def test_all_forms_give_as_many_images_of_one_shape(places: tuple[Path, Path]) -> None:
    found = loading.forms(*places, 32, 1)
    assert list(found)[:3] == ["shards", "files", "DataLoader, Pillow"] and len(found) == 4
    batches = {name: list(form(list(range(12)))) for name, form in found.items()}
    for name, (batch,) in batches.items():
        assert batch.shape == (12, 3, 32, 32) and batch.dtype == torch.uint8, name
    assert torch.equal(batches["shards"][0], batches["files"][0])
    means = [float(batch.float().mean()) for (batch,) in batches.values()]
    assert np.ptp(means) < 15, "all are views of the same images"


def test_a_form_that_loses_images_is_not_timed() -> None:
    with pytest.raises(SystemExit, match="11 images instead of 12"):
        loading.timed(lambda ids: iter([torch.zeros(11, 3, 32, 32)]), list(range(12)))


@pytest.mark.long
def test_waiting_and_memory_are_measured(places: tuple[Path, Path]) -> None:
    shards = places[1]
    found = loading.trained(encoded_set(shards), 1)
    assert found["steps"] == 1 and 0 < found["first_wait"] < found["seconds"] and found["share"] == 0
    memory = loading.peak(shards)
    assert 0 < memory["begin_mb"] <= memory["peak_mb"]


@pytest.mark.long
def test_the_whole_prints_its_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["loading", "--quick", "--markdown", "--cache", str(tmp_path)])
    threads = torch.get_num_threads()
    try:
        loading.main()
    finally:
        torch.set_num_threads(threads)
    shown = capsys.readouterr().out
    assert shown.startswith("<!-- begin: loading cpu -->") and "`python -m benchmarks.loading --quick`" in shown
    assert "| shards |" in shown and "| DataLoader, Pillow |" in shown and "| 40 |" in shown
    assert "waited" in shown
