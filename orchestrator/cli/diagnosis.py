"""The diagnosis of this machine, with remedies: independent checks, one finding each."""

from __future__ import annotations

import base64
import importlib.util
import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from audits.credentials import hide, mask
from audits.errors import BadInput
from audits.memory import free as memory_free
from audits.processors import usable_cpus
from orchestrator.cli.data_sets import data_sets
from orchestrator.engine.run.tracking_uri import chosen_uri
from orchestrator.engine.store.faults import StoreSilent
from orchestrator.engine.store.patience import SHORT
from orchestrator.engine.store.store import Store, default_store_uri
from orchestrator.engine.store.trust import KEY_FILE, Trust

LOW_DISK = 2e9  # bytes
LOW_MEMORY = 2e9


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis: what was looked at, what was found, and what to do about it."""

    status: Literal["ok", "warn", "FAIL"]
    subject: str
    found: str
    fix: str = ""


def diagnose(store: str | None, out: str) -> list[Finding]:
    """Return the findings of every check, in order; a check that breaks is itself a finding."""
    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("Python", python),
        ("torch", torch_pair),
        ("Ray", ray),
        ("CPUs", processors),
        ("memory", memory),
        ("store", lambda: store_place(store)),
        ("output", lambda: output_place(out)),
        ("data", data),
        ("tracking", tracking),
    ]
    findings: list[Finding] = []
    for subject, check in checks:
        try:
            findings += check()
        except Exception as error:
            text = next(iter(hide(str(error)).splitlines()), "")
            findings.append(Finding("FAIL", subject, f"{type(error).__name__}: {text}", "install the package again"))
    return findings


def python() -> Iterator[Finding]:
    """Say which interpreter runs (an older one than 3.11 would not have got this far)."""
    yield Finding("ok", "Python", f"{sys.version.split()[0]} ({sys.executable})")


def torch_pair() -> Iterator[Finding]:
    """Check that torch and torchvision were built for each other."""
    import torch

    try:
        import torchvision
    except (ImportError, RuntimeError) as error:
        what = next(iter(str(error).splitlines()), "")
        fix = f"install both in one call: pip install torch torchvision (torch here is {torch.__version__})"
        yield Finding("FAIL", "torchvision", f"cannot be imported: {what}", fix)
        return
    yield Finding("ok", "torch", f"{torch.__version__}, torchvision {torchvision.__version__}")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        yield Finding("ok", "GPUs", f"{len(names)} ({', '.join(dict.fromkeys(names))})")
    else:
        yield Finding("ok", "GPUs", "none: plans run on the CPU")


def ray() -> Iterator[Finding]:
    """Check that Ray is installed with the parts that train and sweep; nothing is started."""
    if importlib.util.find_spec("ray") is None:
        yield Finding("FAIL", "Ray", "not installed", 'pip install "ray[train,tune]"')
        return

    yield Finding("ok", "Ray", version("ray"))


def processors() -> Iterator[Finding]:
    """Say how many processors a run may use."""
    count = usable_cpus()
    yield Finding("ok", "CPUs", str(count)) if count > 1 else Finding("warn", "CPUs", "1", "runs will take longer")


def memory() -> Iterator[Finding]:
    """Check the memory that is free now."""
    free = memory_free()
    if free is None:
        yield Finding("warn", "memory", "free memory is not known on this system")
        return
    text = f"{free / 1e9:.1f} GB free"
    if free < LOW_MEMORY:
        yield Finding("warn", "memory", text, "close other programs, or use fewer workers (--workers 1)")
    else:
        yield Finding("ok", "memory", text)


def store_place(uri: str | None) -> Iterator[Finding]:
    """Check that the store can be opened, and that a local one can be written and has room."""
    try:
        trust = Trust.of()
    except BadInput as error:
        what, _, fix = str(error).partition("; ")
        yield Finding("FAIL", "store key", what, fix or f"correct {KEY_FILE}, or unset it")
        trust = Trust.of(with_key=False)
    try:
        store = Store(uri or default_store_uri(), SHORT, trust)
    except BadInput as error:
        what, _, fix = str(error).partition("; ")
        yield Finding("FAIL", "store", what, fix)
        return
    origin = "--store" if uri else "ORCH_STORE" if os.environ.get("ORCH_STORE") else "default"
    fix = "name another place with --store or ORCH_STORE"
    here = "://" not in store.uri
    try:
        store.keys("train")
    except (BadInput, OSError, StoreSilent) as error:
        yield Finding("FAIL", "store", f"{store.uri} ({origin}): {error}", fix)
    else:
        if here:
            yield from writable("store", Path(store.uri), f"{store.uri} ({origin})", fix)
        else:
            yield Finding("ok", "store", f"{store.uri} ({origin})")


def output_place(out: str) -> Iterator[Finding]:
    """Check that results can be written."""
    yield from writable("output", Path(out).absolute(), out, "name another folder with --out")


def writable(subject: str, place: Path, shown: str, fix: str) -> Iterator[Finding]:
    """Check that ``place``, or the folder in which it would be made, can be written and has room."""
    folder = place
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield Finding("FAIL", subject, f"{shown} cannot be written: {error.strerror}", fix)
        return
    free = shutil.disk_usage(folder).free
    text = f"{shown}, {free / 1e9:.1f} GB free"
    if free < LOW_DISK:
        yield Finding("warn", subject, text, "free some disk space (orch cache gc), or " + fix)
    else:
        yield Finding("ok", subject, text)


def data() -> Iterator[Finding]:
    """Say which data sets are there; the embedded one must be."""
    for entry in data_sets():
        if entry.state == "present":
            yield Finding("ok", "data", entry.name)
        elif entry.state == "missing":
            status: Literal["warn", "FAIL"] = "FAIL" if entry.name == "fashion14" else "warn"
            yield Finding(status, "data", f"{entry.name} is not in {', '.join(entry.where)}", entry.how_to_get)


def tracking() -> Iterator[Finding]:
    """Check that a tracking server named by MLFLOW_TRACKING_URI answers."""
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if importlib.util.find_spec("mlflow") is None:
        yield Finding("FAIL", "tracking", "mlflow is not installed", "pip install mlflow")
    elif not uri:
        yield Finding("ok", "tracking", "a database in the output folder (MLFLOW_TRACKING_URI is not set)")
    elif uri.startswith(("http://", "https://")):
        yield server(uri)
    else:
        try:
            yield Finding("ok", "tracking", str(chosen_uri(None)))
        except BadInput as error:
            what, _, fix = str(error).partition("; ")
            yield Finding("FAIL", "tracking", what, fix)


def health_request(uri: str) -> urllib.request.Request:
    """Return the question whether the server at ``uri`` is healthy; urllib takes no credentials inside an address.

    Another server, to which this one may redirect, is not sent them.
    """
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(f"{parts.scheme}://{host}{parts.path.rstrip('/')}/health")
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    return request


def server(uri: str) -> Finding:
    """Return whether the MLflow server at ``uri`` is healthy."""
    try:
        with urllib.request.urlopen(health_request(uri), timeout=5) as answer:
            healthy = answer.status == 200
        what = mask(uri) if healthy else f"{mask(uri)} answers {answer.status}"
    except (urllib.error.URLError, OSError, ValueError) as error:
        healthy, what = False, f"{mask(uri)}: {hide(str(getattr(error, 'reason', error)))}"
    fix = "" if healthy else "start the server, or correct or unset MLFLOW_TRACKING_URI"
    return Finding("ok" if healthy else "FAIL", "tracking", what, fix)
