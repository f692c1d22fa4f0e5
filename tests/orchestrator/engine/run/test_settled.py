"""A worker on a GPU computes as its plan says; in a process of its own, since that holds for the whole of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pretended.cuda import NAME

SCRIPT = """
import sys
from benchmarks.pretended import pretended
with pretended():
    import torch
    from audits import gpu
    from orchestrator.engine.run.worker import settle_gpu
    from orchestrator.kinds import load_plan
    settle_gpu("cuda:0", load_plan("apollo-smoke", sys.argv[1:]))
    print(
        torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark,
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, gpu.recorded,
    )
"""
ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("tf32", "record_steps", "said"),
    [("false", "true", "True False False False True"), ("true", "false", "True False True True False")],
)
def test_a_worker_settles_as_its_plan_says(tf32: str, record_steps: str, said: str) -> None:
    fields = ("device=cuda", f"gpu={NAME}", f"tf32={tf32}", f"record_steps={record_steps}")
    words = [f"compute.{field}" for field in fields]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == said, done.stderr
