"""The forward pass of a training step by a team: each worker computes its share of a batch, all see the whole output.

Since every worker has the logits of the whole batch, any loss of them is that of one worker: a mean over a batch that
does not divide evenly, one weighted by other points of the batch, one with a term of the weights. Backward, the
gradient with respect to the logits is cut to the worker's own rows, and DistributedDataParallel sums what follows from
it over the workers while the rest is still being computed. Costs beside that, a step: one all-reduce of the logits.

Sums are rounded otherwise than by one worker. Equal bits are given again, though, also by a training that goes on from
a snapshot: gradients travel in buckets of one order from the first step to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from audits.seeds import derive_seed
from audits.training.synced_norm import synced
from audits.training.team import Team

Forward = Callable[[torch.Tensor, int], torch.Tensor]
"""(a worker's share of a batch, points of the batch) → logits of the whole batch."""


def forward_of(model: nn.Module, team: Team) -> Forward:
    """Return the forward pass of ``model`` for the steps of one training; whoever is alone has the model's own."""
    if team.size == 1:
        return lambda x, points: model(x)
    return Shared(model, team)


class Shared:
    """The forward pass of ``model`` by ``team``. Parameters become those of the first worker, buffers in every pass.

    Dropout draws in each share by itself, from what the workers' common generator and the worker's rank say. A batch
    too small to be shared (``Team.share``) is computed by all.
    """

    def __init__(self, model: nn.Module, team: Team) -> None:
        self.model, self.team = model, team
        self.parallel = DistributedDataParallel(
            model,
            process_group=team.group,
            # keeps the buckets as they are: otherwise the second step would order them anew, and rounding with them
            find_unused_parameters=True,
        )

    def __call__(self, x: torch.Tensor, points: int) -> torch.Tensor:
        """Return the logits (points, classes) of the batch of which ``x`` is this worker's share."""
        if len(x) == points:
            output: torch.Tensor = self.parallel(x)
            return output
        statistics = synced(self.model, self.team.group) if self.team.sync_batch_norm else nullcontext()
        with own_draws(self.team.rank, x.device), statistics:
            share = self.parallel(x)
        whole: torch.Tensor = Whole.apply(share, points, self.team)
        return whole


class Whole(torch.autograd.Function):
    """The rows of all shares, and backward the gradient of a worker's own rows.

    It is multiplied by the number of workers, since DistributedDataParallel takes the mean over them.
    """

    @staticmethod
    def forward(ctx: Any, share: torch.Tensor, points: int, team: Team) -> torch.Tensor:
        ctx.rows, ctx.size = team.share(points), team.size
        whole = share.new_zeros(points, *share.shape[1:])
        whole[ctx.rows] = share
        dist.all_reduce(whole, group=team.group)
        return whole

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (gradient,) = gradients
        return gradient[ctx.rows] * ctx.size, None, None


@contextmanager
def own_draws(rank: int, device: torch.device) -> Iterator[None]:
    """Let the global generators draw what only worker ``rank`` draws; they go on in step with those of the others."""
    seed = derive_seed(int(torch.randint(2**62, ())), "share", rank)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.default_generators[device.index].manual_seed(seed)
        yield
