"""Several processes of this machine that train one model together."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing import get_context
from torch.multiprocessing.spawn import start_processes

from audits.training.team import Team

Work = Callable[..., Any]


def by_team(size: int, place: Path, work: Work, *arguments: Any) -> list[Any]:
    """Return what ``work(team, *arguments)``, a function of a module, returns in each of ``size`` processes.

    They are forked from a process that has imported PyTorch and the first team's module, and done nothing with them.
    """
    place.mkdir(parents=True)
    preloaded = [__name__, work.__module__, "torch._dynamo"]  # which optimizers import
    get_context("forkserver").set_forkserver_preload(preloaded)
    start_processes(
        joined, (size, str(place), secrets.token_bytes(32), work, arguments), nprocs=size, start_method="forkserver"
    )
    return [torch.load(place / f"{rank}.pt", weights_only=False) for rank in range(size)]


def joined(rank: int, size: int, place: str, key: bytes, work: Work, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    meeting, patience = f"file://{place}/meeting", timedelta(seconds=120)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size, timeout=patience)
    torch.save(work(Team(rank, size, dist.group.WORLD, key=key), *arguments), f"{place}/{rank}.pt")
    dist.destroy_process_group()
