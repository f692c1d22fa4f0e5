"""The processors that this process may use."""

from __future__ import annotations

import os
from pathlib import Path


def usable_cpus() -> int:
    """Return the CPUs that this process may use (affinity and container quota)."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = Path("/sys/fs/cgroup/cpu.max")
    if quota.is_file():
        limit, period = quota.read_text().split()
        if limit != "max":
            count = min(count, max(1, int(limit) // int(period)))
    return count
