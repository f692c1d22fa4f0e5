"""Whole plans of every kind run on a GPU, a pretended one, in this process: no devices mixed, and the CPU's result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks.pretended import pretended
from tests.cases.runs import audited
from tests.cases.smallest_plans import GIVEN, SMALLEST, smallest_plan

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def choices() -> object:
    """Leave torch's choice of algorithms as it was: runs on a GPU ask for deterministic ones."""
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", [*SMALLEST, *GIVEN])
def test_a_plan_runs_there_and_finds_what_the_cpu_finds(name: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    audited(smallest_plan(name, tmp_path / "store", **{"compute.device": "cpu"}), here)
    with pretended() as counts:
        audited(smallest_plan(name, tmp_path / "store", **{"compute.device": "cuda"}), there)
    assert counts.launches.total() > 1000
    wanted, found = (pq.read_table(folder / "scores.parquet") for folder in (here, there))
    assert found.schema.names == wanted.schema.names and len(found) == len(wanted)
    for column in wanted.schema.names:
        one, other = found[column].to_numpy(), wanted[column].to_numpy()
        if one.dtype.kind == "f":
            close = np.isclose(one, other, rtol=1e-2, atol=1e-4, equal_nan=True)
            assert close.mean() > 0.95, f"{column}: {(~close).sum()} of {len(close)} values differ"
        else:
            assert (one == other).mean() > 0.95, column
