"""The report of one node of a cluster: versions, source, devices, disk, and whether it sees the store and the data."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from actors.cluster import SOURCE_PACKAGES
from audits.errors import BadInput
from audits.processors import usable_cpus
from orchestrator.engine.data import data_of
from orchestrator.engine.store.open import open_storage
from orchestrator.engine.store.trust import Trust

COUNT_GPUS = "import torch; print(torch.cuda.device_count())"
COUNT_SECONDS = 60.0
DRIVER_FILE = "driver"
NODE_FILE = "node"


@dataclass(frozen=True)
class Question:
    """What every node is asked: ``probe`` is a folder of the store in which the driver has left a file."""

    store: str
    probe: str
    word: bytes
    data: tuple[str, str | None, str | None]
    trust: Trust = field(default_factory=partial(Trust.of, with_key=False))
    """What the user of the driver has said of stores; no key travels, as nothing that is signed is read."""

    def __call__(self) -> NodeReport:
        """Return the answer of the machine that this runs on."""
        data, problem = see_data(*self.data)
        return NodeReport(
            python=platform.python_version(),
            ray=version("ray"),
            torch=version("torch"),
            code=source_digest(),
            cpus=usable_cpus(),
            gpus=count_gpus(),
            free=shutil.disk_usage(os.getcwd()).free,
            store=see_store(self.store, self.probe, self.word, self.trust),
            data=data,
            data_problem=problem,
        )


@dataclass(frozen=True)
class NodeReport:
    """One node's answer; ``store`` and ``data_problem`` are empty where nothing is wrong.

    ``gpus``: those that torch finds; None where it cannot be asked. ``free``: bytes of disk. ``data``: the fingerprint
    of the plan's data set.
    """

    python: str
    ray: str
    torch: str
    code: str
    cpus: int
    gpus: int | None
    free: int
    store: str
    data: str
    data_problem: str


def version(package: str) -> str:
    """Return the installed version of a package, without importing it; empty if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def source_digest() -> str:
    """Return a short digest of orch's own source files, as this process imports them."""
    digest = hashlib.sha256()
    for package in SOURCE_PACKAGES:
        found = find_spec(package)
        places = list(found.submodule_search_locations or []) if found else []  # on a node each has a place of its own
        for folder in map(Path, places):
            for path in sorted(folder.rglob("*.py")):
                name = f"{package}/{path.relative_to(folder).as_posix()}"
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def count_gpus() -> int | None:
    """Return the GPUs that torch finds here, those too that Ray hides from a process which asked for none."""
    if not any(Path("/dev").glob("nvidia[0-9]*")) and not Path("/dev/kfd").exists():
        return 0
    seen = {name: value for name, value in os.environ.items() if not name.endswith("_VISIBLE_DEVICES")}
    command = [sys.executable, "-P", "-c", COUNT_GPUS]
    try:
        said = subprocess.run(
            command, cwd="/", env=seen, capture_output=True, text=True, timeout=COUNT_SECONDS, check=True
        )
        return int(said.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def see_store(uri: str, probe: str, word: bytes, trust: Trust) -> str:
    """Read the driver's file of the store and leave one beside it; return what went wrong, on one line."""
    try:
        storage = open_storage(uri, trust=trust)
        if storage.read(f"{probe}/{DRIVER_FILE}") != word:
            return "holds another file where the driver wrote one"
    except FileNotFoundError:
        return "is another place here than for the driver: its file is not there"
    except (BadInput, OSError, RuntimeError) as error:
        return f"cannot be read: {first_line(error)}"
    try:
        storage.publish(f"{probe}/{hashlib.sha256(os.urandom(16)).hexdigest()[:12]}", {NODE_FILE: word})
    except (BadInput, OSError, RuntimeError) as error:
        return f"cannot be written: {first_line(error)}"
    return ""


def see_data(name: str, root: str | None, groups: str | None) -> tuple[str, str]:
    """Return the fingerprint of a data set, or why it cannot be loaded."""
    try:
        return data_of(name, root, groups).fingerprint, ""
    except (BadInput, OSError) as error:
        return "", first_line(error)


def first_line(error: Exception) -> str:
    """Return the first line of what an error says."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
