"""Finished runs of the smallest plans, opened again: what they say, and stores that a test may add to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from orchestrator.engine.run.run import Result
from tests.cases.kept import finished


def result_of(run: Path) -> Result:
    """Return the result of a finished run as its files have it."""
    return Result(json.loads((run / "result.json").read_text("utf-8")), pq.read_table(run / "scores.parquet"))


def store_of(name: str, into: Path) -> Path:
    """Return a copy of the store of the finished run ``name`` at ``into``."""
    return Path(shutil.copytree(finished(name).with_name("store"), into))
