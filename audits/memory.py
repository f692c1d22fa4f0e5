"""Work in chunks that get smaller when memory does not suffice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

R = TypeVar("R")


def by_chunks(work: Callable[[slice], R], count: int, chunk: int) -> list[R]:
    """Return ``work`` of the rows 0…``count`` − 1, ``chunk`` at a time, in order; of no row where there is none.

    Where a chunk finds no memory, it and all after it are halved, down to single rows: for work on rows that do not
    depend on each other, so that another chunk changes rounding only. Without such a failure the chunks are fixed.
    """
    found: list[R] = []
    first = 0
    while first < count or not found:
        rows = slice(first, min(first + chunk, count))
        try:
            found.append(work(rows))
        except Exception as error:
            if chunk <= 1 or not out_of_memory(error):
                raise
        else:
            first += max(chunk, 1)
            continue
        chunk = halved(chunk)
    return found


def with_less(work: Callable[[int], R], chunk: int) -> R:
    """Return ``work(chunk)``; where memory does not suffice, of half the chunk, down to 1."""
    while True:
        try:
            return work(chunk)
        except Exception as error:
            if chunk <= 1 or not out_of_memory(error):
                raise
        chunk = halved(chunk)


def halved(chunk: int) -> int:
    """Return half of ``chunk``, after what the failed attempt held on the device is given back."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return max(1, chunk // 2)


def out_of_memory(error: BaseException) -> bool:
    """Say whether ``error`` means that memory does not suffice, on a device or in the process."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)  # torch has no class for it
