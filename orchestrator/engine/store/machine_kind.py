"""The kind of machine that made an artefact: on one kind equal work gives equal bits, on another other rounding."""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache


@cache
def machine_kind() -> str:
    """Return the architecture and the model of this machine's CPU, such as ``x86_64 AMD EPYC 9354``."""
    model = platform.processor()
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
        model = next(names, model)
    return " ".join(dict.fromkeys(f"{platform.machine()} {model}".split()))
