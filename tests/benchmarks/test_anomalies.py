"""The benchmark of k-means clusters the same blocks in both forms; how fast or small anything is, no test asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import anomalies, record

SIZES = {"points": 300, "models": 5, "width": 128, "clusters": 4}


def test_blocks_are_the_same_in_every_pass_and_rows_have_norm_one():
    blocks = anomalies.Blocks(**SIZES, device="cpu")
    first, second = (torch.cat(list(blocks), dim=1) for _ in range(2))
    assert first.shape == (300, 640) and torch.equal(first, second)
    assert torch.allclose(first.norm(dim=1), torch.ones(300), atol=1e-5)
    assert all(one["ended"] - one["began"] >= one["making"] > 0 for one in blocks.passes)


@pytest.mark.parametrize("form", anomalies.FORMS)
def test_both_forms_read_block_by_block_and_their_phases_add_up(form):
    found = anomalies.measured(form, SIZES, "cpu", threads=1)
    assert found["passes"] == (4 if form == "sketch" else 4 + found["iterations"])
    assert sum(found["phases"].values()) == pytest.approx(found["seconds"], rel=0.01)
    assert 0 < found["making"] < found["seconds"] and found["peak_bytes"] > 2**20


def test_both_forms_find_clusters_about_equally_good():
    sketch, features = (anomalies.FORMS[form](anomalies.Blocks(**SIZES, device="cpu")) for form in anomalies.FORMS)
    assert sketch.inertia <= 1.02 * features.inertia
    np.testing.assert_allclose(np.square(sketch.distance).sum(), sketch.inertia)


def test_a_record_has_a_row_for_each_form(monkeypatch, capsys):
    monkeypatch.setattr(anomalies, "apart", anomalies.measured)  # in this process
    anomalies.main(["--quick", "--features", "--markdown"])
    shown = capsys.readouterr().out
    assert shown.startswith("<!-- begin: anomalies cpu -->")
    assert "`python -m benchmarks.anomalies --features --quick`" in shown
    assert "| sketch |" in shown and "| features |" in shown and "k-means in the sketch" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--points", "0"], "--points 0: give 1 or more"),
        (["--clusters", "5000"], "--clusters 5000: give at most 2048"),
        (["--device", "cuda"], "torch finds no GPU here"),
    ],
)
def test_sizes_that_cannot_be_are_refused(arguments, told, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        anomalies.main(arguments)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


def test_the_docs_have_a_place_for_both_devices():
    text = (Path(record.__file__).parent.parent / "docs" / "results" / "benchmarks.md").read_text()
    for section in ("anomalies cpu", "anomalies cuda"):
        record.replace_section(text, section, "")
