"""A worker on a GPU computes as its plan says, which holds for the whole of its process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from audits import gpu
from benchmarks.pretended import pretended
from benchmarks.pretended.cuda import NAME
from orchestrator.engine.run.worker import settle_gpu
from orchestrator.kinds import load_plan


@pytest.fixture(autouse=True)
def settled_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process compute afterwards as it did."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    places = (
        (gpu, "recorded"),
        (torch.utils.deterministic, "fill_uninitialized_memory"),  # type: ignore[attr-defined]  # is there
        (torch.backends.cudnn, "benchmark"),
        (torch.backends.cudnn, "allow_tf32"),
        (torch.backends.cuda.matmul, "allow_tf32"),
    )
    before = [getattr(place, name) for place, name in places]
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    yield
    torch.use_deterministic_algorithms(deterministic)
    for (place, name), value in zip(places, before, strict=True):
        setattr(place, name, value)


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("record_steps", [False, True])
def test_a_worker_settles_as_its_plan_says(tf32: bool, record_steps: bool) -> None:
    fields = ("device=cuda", f"gpu={NAME}", f"tf32={tf32}".lower(), f"record_steps={record_steps}".lower())
    torch.backends.cudnn.benchmark = True
    with pretended():
        settle_gpu("cuda:0", load_plan("apollo-smoke", [f"compute.{field}" for field in fields]))
    assert torch.are_deterministic_algorithms_enabled() and not torch.backends.cudnn.benchmark
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == (tf32, tf32)
    assert gpu.recorded is record_steps
