"""How much memory there is, and work in chunks that get smaller when it does not suffice."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")


class Forms(Generic[R]):
    """Forms of the same work, from the fastest one to that which needs least memory; ``now``: the one in use."""

    def __init__(self, *forms: R) -> None:
        self.now, *self.left = forms

    def fewer(self) -> bool:
        """Go on with the next form; False where there is none."""
        if not self.left:
            return False
        self.now = self.left.pop(0)
        return True


def by_chunks(work: Callable[[slice], R], count: int, chunk: int, fewer: Callable[[], bool] = lambda: False) -> list[R]:
    """Return ``work`` of the rows 0…``count`` − 1, ``chunk`` at a time, in order; of no row where there is none.

    Where a chunk finds no memory, it and all after it are halved, down to single rows: for work on rows that do not
    depend on each other, so that another chunk changes rounding only. Where a single row finds none, ``fewer`` lets
    ``work`` take fewer models at once, or says that it cannot. Without such a failure the chunks are fixed.
    """
    found: list[R] = []
    first = 0
    while first < count or not found:
        rows = slice(first, min(first + chunk, count))
        try:
            found.append(work(rows))
        except Exception as error:
            if not out_of_memory(error) or (chunk <= 1 and not fewer()):
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
    give_back()
    return max(1, chunk // 2)


def give_back() -> None:
    """Give back what this process holds of a GPU's memory without using it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def of_machine() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def out_of_memory(error: BaseException) -> bool:
    """Say whether ``error`` means that memory does not suffice, on a device or in the process."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)  # torch has no class for it
