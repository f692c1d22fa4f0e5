"""Settings of this process for a GPU: what decides the last bits, and whether steps of trainings are recorded."""

from __future__ import annotations

import os

recorded = True
"""Whether steps of trainings are recorded (``audits.training.backward``)."""


def settle(tf32: bool = False, record_steps: bool = True) -> None:
    """Let torch take deterministic algorithms, the same in every process, and TF32 only if asked; record steps or not.

    Memory that is made is not filled, which torch does for whoever reads it before anything is written there.
    """
    import torch

    global recorded
    recorded = record_steps
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
