"""What decides the last bits that a GPU computes."""

from __future__ import annotations

import os


def settle(tf32: bool = False) -> None:
    """Let torch take deterministic algorithms, the same in every process, and TF32 only if asked.

    Memory that is made is not filled, which torch does for whoever reads it before anything is written there.
    """
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
