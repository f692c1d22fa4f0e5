"""Workers of a Train group that train a model together: how they meet, and how they part when one fails.

A group of n workers makes n/k teams of k. Each is a process group of torch of its own: gloo, and nccl for what lies on
GPUs. On a machine of its own it meets through a file and talks over the loopback interface, on a cluster through a port
of its first worker. Whoever else can reach it there does not have the secret of the team, which travels with its work.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from audits.training.team import Stranger, Team

MEETING = "ORCH_TEAM_MEETS_AT"
"""Environment variable of a worker: where its team meets."""
SECRET = "ORCH_TEAM_SECRET"
"""Environment variable of a worker: by what the members of its team know each other, in hex."""
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
"""Environment variables that name the network interface which gloo and nccl use."""
SIOCGIFADDR = 0x8915
"""Linux's request for the address of a network interface."""
PATIENCE = timedelta(days=7)
"""For one another. Workers may wait for the first for as long as a job takes that it does alone; it is Ray and the
queue who notice that one is lost or hangs, and then the group is started again."""
PARTING_SECONDS = 5.0
"""How long a worker that failed waits for the others of its team to fail as well, before it breaks off."""


def leader(worker: int, size: int) -> int:
    """Return the rank of the first worker of the team of ``worker``."""
    return worker // size * size


def mates(worker: int, size: int) -> range:
    """Return the ranks of the team of ``worker``."""
    return range(leader(worker, size), leader(worker, size) + size)


def call_together(worker_group: Any, size: int, folder: str | None) -> None:
    """Tell the workers of a Train group that begins where their teams meet: in ``folder``, or at their first worker."""
    for first in range(0, len(worker_group) // size * size, size):
        where = worker_group.execute_single(first, free_port) if folder is None else fresh_file(folder)
        secret = secrets.token_hex(32)
        for rank in mates(first, size):
            worker_group.execute_single(rank, meet_at, where, secret)


def free_port() -> str:
    """Return an address at which this process can be met."""
    import ray

    with socket.socket() as found:
        found.bind(("", 0))
        return f"tcp://{ray.util.get_node_ip_address()}:{found.getsockname()[1]}"


def fresh_file(folder: str) -> str:
    """Return the URL of a file below ``folder`` that is not there yet, and that no other user can read.

    It says where the workers of a team listen.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    return f"file://{tempfile.mkdtemp(prefix='team-', dir=folder)}/{uuid4().hex}"


def meet_at(where: str, secret: str) -> None:
    """Note in this process where its team meets, what its members know, and by which network interface it talks.

    Workers of one machine stay on its loopback interface. On a cluster it is the one by which Ray reaches the machine,
    unless the environment names another: gloo would take that of the machine's name, which may be loopback.
    """
    os.environ.update({MEETING: where, SECRET: secret})
    if where.startswith("file:"):
        loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
        os.environ.update(dict.fromkeys(INTERFACES, loopback))
        return
    import ray

    if interface := interface_of(ray.util.get_node_ip_address()):
        for name in INTERFACES:
            os.environ.setdefault(name, interface)


def interface_of(address: str) -> str:
    """Return the name of the network interface with an IPv4 ``address``, "" where the system (Linux) tells none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                found = fcntl.ioctl(asking.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(found[20:24]) == address:
                    return name
    return ""


@contextmanager
def joined(worker: int, size: int, gpus: bool) -> Iterator[Team]:
    """Join the team of ``worker``, once all of it is there, and leave it in the end, if nothing broke.

    gloo takes the first who connects for a member: the members prove to each other that they are.
    """
    import torch.distributed as dist

    rank = worker - leader(worker, size)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if gpus else "gloo",
        init_method=os.environ[MEETING],
        rank=rank,
        world_size=size,
        timeout=PATIENCE,
    )
    team = Team(rank, size, dist.group.WORLD, key=bytes.fromhex(os.environ[SECRET]))
    team.greet()
    yield team
    dist.destroy_process_group()


def lost_a_mate(error: Exception) -> bool:
    """Return whether ``error`` is that of a worker whose talk with the others of its team broke off."""
    import torch.distributed as dist

    broken = isinstance(error, RuntimeError) and any(name in str(error) for name in ("gloo", "NCCL"))
    return broken or isinstance(error, Stranger | dist.DistError)


def parted(server: Any, worker: str, life: int, team: Team) -> None:
    """End the part of a worker that failed: quietly if all of its team failed, else so that the others notice.

    They wait for it within torch, where nothing but the end of this process reaches them.
    """
    import ray

    others = [str(rank) for rank in mates(int(worker), team.size) if str(rank) != worker] if team.size > 1 else []
    until = time.monotonic() + PARTING_SECONDS
    while others and not ray.get(server.part.remote(worker, life, others)):
        if time.monotonic() > until:
            os._exit(1)
        time.sleep(0.1)
