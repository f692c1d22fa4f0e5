"""The diagnosis of a cluster: every node is asked what it is like, and the answers are compared."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from actors.cluster import connect
from actors.jobs import Workers
from actors.nodes import Answer, ask_nodes
from audits.errors import BadInput
from audits.writing import TEMPORARY
from orchestrator.cli.diagnosis import LOW_DISK, Finding
from orchestrator.cli.node_report import DRIVER_FILE, NodeReport, Question, first_line
from orchestrator.engine.store.open import open_storage
from orchestrator.engine.store.store import default_store_uri

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.store.storage import Storage

LARGE_SKEW = 2.0  # seconds
HEADER = ("node", "CPUs", "GPUs", "by torch", "python", "ray", "torch", "orch", "store", "data", "clock", "disk free")


def ask_cluster(plan: BasePlan) -> tuple[NodeReport, list[Answer]]:
    """Join the cluster of ``plan`` and return what the driver's machine and every node are like.

    Raises BadInput where no cluster answers. A file of the store is written, read by all, and removed.
    """
    uri = plan.compute.store or default_store_uri()
    uri = uri if "://" in uri else os.path.abspath(os.path.expanduser(uri))
    question = Question(
        uri,
        f"{TEMPORARY}doctor-{secrets.token_hex(6)}",
        secrets.token_bytes(16),
        (plan.data.name, plan.data.root, plan.data.groups),
    )
    workers = Workers(1, address=plan.compute.address or "auto", head=True, storage=".orch/ray")
    with connect(workers):
        try:
            storage = open_storage(uri, trust=question.trust)
            storage.publish(question.probe, {DRIVER_FILE: question.word})
        except (BadInput, OSError, RuntimeError) as error:
            raise BadInput(f"the store {uri} cannot be written from here: {first_line(error)}") from error
        try:
            return question(), ask_nodes(question)
        finally:
            remove(storage, question.probe)


def remove(storage: Storage, folder: str) -> None:
    """Remove every file below a folder."""
    for entry in list(storage.walk(folder)):
        storage.remove_file(entry.path)


def table(answers: Sequence[Answer]) -> str:
    """Return the answers as lines of aligned columns."""
    rows = [HEADER, *map(row, answers)]
    widths = [max(len(line[column]) for line in rows) for column in range(len(HEADER))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in rows)


def row(answer: Answer) -> tuple[str, ...]:
    """Return the cells of one node."""
    node, said = answer.node, answer.said
    name = f"{node.name} (head)" if node.head else node.name
    sizes = (name, f"{node.cpus:g}", f"{node.gpus:g}")
    if said is None:
        return (*sizes, *["?"] * (len(HEADER) - len(sizes)))
    return (
        *sizes,
        "?" if said.gpus is None else str(said.gpus),
        said.python,
        said.ray,
        said.torch,
        said.code,
        "no" if said.store else "yes",
        said.data[:8] or "no",
        f"{answer.skew:+.2f} s",
        f"{said.free / 1e9:.0f} GB",
    )


def judge(driver: NodeReport, answers: Sequence[Answer]) -> list[Finding]:
    """Return what is wrong, node by node; one line that says so if nothing is."""
    found = [finding for answer in answers for finding in problems(driver, answer)]
    if driver.data_problem:
        found.insert(0, Finding("FAIL", "driver: data", driver.data_problem, "put the data on this machine, too"))
    return found or [Finding("ok", "cluster", f"{len(answers)} node{'s' * (len(answers) != 1)}, nothing wrong")]


def problems(driver: NodeReport, answer: Answer) -> Iterator[Finding]:
    """Yield what is wrong with one node."""
    name, said = answer.node.name, answer.said
    if said is None:
        yield Finding("FAIL", name, answer.problem, "look at Ray's logs there, or take the node out: ray stop")
        return
    yield from differences(driver, name, said)
    yield from gpus(answer)
    if said.store:
        yield Finding("FAIL", f"{name}: store", said.store, "name a place that all nodes share: compute.store=s3://…")
    if said.data_problem:
        yield Finding("FAIL", f"{name}: data", said.data_problem, "put the data on every node, in the same place")
    elif driver.data and said.data != driver.data:
        found = f"another data set than the driver's ({said.data[:8]}, not {driver.data[:8]})"
        yield Finding("FAIL", f"{name}: data", found, "copy the driver's files there")
    for place in answer.unreached:
        yield Finding("FAIL", f"{name}: network", f"no connection to {place}", "open Ray's ports between the nodes")
    if abs(answer.skew) > LARGE_SKEW:
        yield Finding("warn", f"{name}: clock", f"{answer.skew:+.1f} s from the driver's", "synchronise it (NTP)")
    if said.free < LOW_DISK:
        yield Finding("warn", f"{name}: disk", f"{said.free / 1e9:.1f} GB free", "free some disk space there")


def differences(driver: NodeReport, name: str, said: NodeReport) -> Iterator[Finding]:
    """Yield the versions that differ from the driver's: a worker refuses jobs of another torch or orch."""
    fixes = {
        "python": "install the same Python on every node",
        "ray": "install the same Ray on every node",
        "torch": "install the same torch on every node; artefact keys name its version",
        "code": "install the same orch on every node, or run from a checkout, which travels with the run",
    }
    for field, fix in fixes.items():
        here, there = getattr(driver, field), getattr(said, field)
        if here != there:
            what = "orch" if field == "code" else field
            yield Finding("FAIL", f"{name}: {what}", f"{there or 'not installed'}, the driver has {here}", fix)


def gpus(answer: Answer) -> Iterator[Finding]:
    """Yield what differs between the GPUs that Ray hands out and those that torch finds."""
    subject, handed, found = f"{answer.node.name}: GPUs", answer.node.gpus, answer.said.gpus
    if found is None:
        yield Finding(
            "FAIL", subject, "torch cannot be asked for them", "install torch there again, with its CUDA build"
        )
    elif found < handed:
        fix = "mend the NVIDIA driver or install a CUDA build of torch there"
        yield Finding("FAIL", subject, f"Ray hands out {handed:g}, torch finds {found}", fix)
    elif found > handed:
        fix = f"start the node with --num-gpus={found}"
        yield Finding("warn", subject, f"torch finds {found}, Ray hands out {handed:g}", fix)
