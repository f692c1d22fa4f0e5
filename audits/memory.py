"""The memory that there is, and work in chunks that get smaller when it does not suffice."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

R = TypeVar("R")

MEMINFO, GROUPS, OWN_GROUPS = Path("/proc/meminfo"), Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
V2_FILES: Final = ("memory.max", "memory.current")
V1_FILES: Final = ("memory.limit_in_bytes", "memory.usage_in_bytes")


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
    """Return the bytes of memory that this machine has, or, where that is less, that a container of it may take."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([there, *(limit for limit, _ in limits())])


def free(meminfo: Path = MEMINFO) -> int | None:
    """Return the bytes of memory that can be had now, within a container's limit; None where the system is silent."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        there = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    return max(0, min([there, *(limit - used for limit, used in limits())]))


def limits(groups: Path = GROUPS, mine: Path = OWN_GROUPS) -> list[tuple[int, int]]:
    """Return limit and use, in bytes, of each control group around this process that limits memory.

    ``groups``: where they are mounted, of version 2 or 1; ``mine``: the file that says to which this process belongs.
    In a container its own group is mounted at the top, whatever path the file says.
    """
    try:
        lines = [line.split(":", 2) for line in mine.read_text().splitlines()]
    except OSError:
        return []
    found = []
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if controllers and "memory" not in controllers.split(","):
            continue
        top = groups / "memory" if controllers else groups
        most, used = V1_FILES if controllers else V2_FILES
        inner = Path(path.lstrip("/"))
        for folder in dict.fromkeys((top, *(top / each for each in (inner, *inner.parents)))):
            try:
                limit = int((folder / most).read_text())
                found.append((limit, int((folder / used).read_text()) - cached(folder / "memory.stat")))
            except (OSError, ValueError):  # "max", or not there
                continue
    return found


def cached(statistics: Path) -> int:
    """Return the bytes of a control group that hold files and are given up where memory is short; 0 if unknown."""
    try:
        lines = dict(line.split(maxsplit=1) for line in statistics.read_text().splitlines())
        return int(lines.get("total_inactive_file") or lines["inactive_file"])
    except (OSError, KeyError, ValueError):
        return 0


def out_of_memory(error: BaseException) -> bool:
    """Say whether ``error`` means that memory does not suffice, on a device or in the process."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)  # torch has no class for it
