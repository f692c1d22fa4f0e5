"""A worker on a GPU computes as its plan says; in a process of its own, since that holds for the whole of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.pretended.cuda import NAME

SCRIPT = """
from benchmarks.pretended import pretended
with pretended():
    import torch
    from audits import gpu
    from orchestrator.engine.run.worker import settle_gpu
    from orchestrator.kinds import load_plan
    for tf32, record_steps in (("false", "true"), ("true", "false")):
        fields = ("device=cuda", "gpu=NAME", f"tf32={tf32}", f"record_steps={record_steps}")
        settle_gpu("cuda:0", load_plan("apollo-smoke", [f"compute.{field}" for field in fields]))
        print(
            torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark,
            torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, gpu.recorded,
        )
"""
ROOT = Path(__file__).resolve().parents[4]


def test_a_worker_settles_as_its_plan_says() -> None:
    words = [sys.executable, "-c", SCRIPT.replace("NAME", NAME)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["True False False False True", "True False True True False"], done.stderr
