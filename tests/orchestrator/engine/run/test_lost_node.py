"""A node that is lost in the midst of a run costs time and changes no bit of the scores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_the_loss_of_one_of_three_nodes_gives_the_same_scores(
    reference: Callable[[str], bytes], tmp_path: Path
) -> None:
    root = Path(__file__).resolve().parents[4]
    surroundings = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "7" * 64, "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "tests.orchestrator.engine.run.three_nodes", str(tmp_path)]
    run = subprocess.run(command, env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "lost").exists()
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == reference("apollo")
