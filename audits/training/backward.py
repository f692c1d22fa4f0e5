"""The part that all steps of a training share: on a GPU it is recorded once and played again, which spares launches.

A step of a small or narrow model leaves a GPU waiting for the host, which hands it some hundred kernels one by one. A
CUDA graph hands them over at once. Kernels, their order and so the numbers are those of a step that is not recorded.
"""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from audits import gpu
from audits.memory import out_of_memory
from audits.training.team import ALONE, Team

Work = Callable[..., torch.Tensor | None]
Loss = Callable[..., torch.Tensor]
"""Tensors of a batch → its loss, a scalar."""
WARM = 2
"""Batches of one form that are computed as usual before the next is recorded: libraries get ready in the first."""


class NotRecorded(Exception):
    """Work could not be recorded; nothing of it was done, and it can be done without."""


class Recording(Protocol):
    """Work that was recorded."""

    def play(self, batch: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """Do the work on ``batch`` and return its result, which the next call overwrites."""


class Repeated:
    """``repeated(*batch)`` does ``work(*batch)`` on tensors in place, and returns a tensor or None.

    What changes from call to call has to be in tensors, those of the batch or others that stay where they are: a
    recording keeps the value of everything else. Batches may differ in size; each is recorded for itself. A result is
    overwritten by the next call. Memory on a GPU: that of one call, for as long as this object lives.
    """

    def __init__(self, work: Work, model: nn.Module, team: Team = ALONE) -> None:
        self.work = work
        self.parameters = [each for each in model.parameters() if each.requires_grad]
        self.record = record if recordable(model, team) else None
        self.seen: Counter[tuple[object, ...]] = Counter()
        self.recordings: dict[tuple[object, ...], Recording] = {}

    def __call__(self, *batch: torch.Tensor) -> torch.Tensor | None:
        if self.record is None:
            return self.work(*batch)
        form = tuple((each.shape, each.stride(), each.dtype) for each in batch)
        if form not in self.recordings:
            self.seen[form] += 1
            if self.seen[form] <= WARM:
                return self.work(*batch)
            try:
                self.recordings[form] = self.record(self.work, self.parameters, batch)
            except NotRecorded as error:
                logging.getLogger(__name__).warning("training: steps are not recorded: %s", error)
                self.record = None
                return self.work(*batch)
        return self.recordings[form].play(batch)


class Backward:
    """``backward(*batch)`` puts the gradient of ``loss(*batch)`` into ``model``'s parameters and returns the loss.

    ``then`` changes the gradients in place. The loss is detached; else as ``Repeated``.
    """

    def __init__(
        self, model: nn.Module, loss: Loss, team: Team = ALONE, then: Callable[[], None] | None = None
    ) -> None:
        self.parameters = [each for each in model.parameters() if each.requires_grad]
        self.repeated = Repeated(Gradient(self.parameters, loss, then), model, team)

    def __call__(self, *batch: torch.Tensor) -> torch.Tensor:
        loss = self.repeated(*batch)
        assert loss is not None
        return loss


@dataclass(frozen=True)
class Gradient:
    """The work of ``Backward``. It knows nothing of the recording of it, so that both go when the last step is done."""

    parameters: Sequence[nn.Parameter]
    loss: Loss
    then: Callable[[], None] | None = None

    def __call__(self, *batch: torch.Tensor) -> torch.Tensor:
        for parameter in self.parameters:
            parameter.grad = None
        loss = self.loss(*batch)
        loss.backward()
        if self.then is not None:
            self.then()
        return loss.detach()


def recordable(model: nn.Module, team: Team) -> bool:
    """Return whether steps of ``model`` are recorded: alone on a GPU, and its architecture says so.

    Where the gradient of a parameter is watched they cannot: the watcher would be asked once.
    """
    on_gpu = gpu.recorded and any(each.device.type == "cuda" for each in model.parameters())
    watched = any(each._post_accumulate_grad_hooks or each._backward_hooks for each in model.parameters())
    return on_gpu and team.size == 1 and getattr(model, "recordable", False) is True and not watched


class Graph:
    """A CUDA graph of some work, with the tensors that it reads and writes."""

    def __init__(self, work: Work, parameters: Sequence[nn.Parameter], batch: Sequence[torch.Tensor]) -> None:
        self.batch = [torch.empty_like(each).copy_(each) for each in batch]
        self.graph = torch.cuda.CUDAGraph()
        device = batch[0].device if batch else parameters[0].device
        recording = torch.cuda.graph(self.graph, capture_error_mode="thread_local")
        with unharmed(device), undisturbed(), recording:
            self.result = work(*self.batch)
        self.parameters = parameters
        self.gradients = [each.grad for each in parameters]

    def play(self, batch: Sequence[torch.Tensor]) -> torch.Tensor | None:
        for own, given in zip(self.batch, batch, strict=True):
            own.copy_(given)
        self.graph.replay()
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        return self.result


@contextmanager
def unharmed(device: torch.device) -> Iterator[None]:
    """Raise NotRecorded for a recording that broke off, with stream and generator of ``device`` as they were.

    Torch would leave the stream of the recording in use, and the generator as if it were recorded still.
    """
    stream, generator = torch.cuda.current_stream(device), torch.cuda.default_generators[device.index]
    state = generator.get_state()
    try:
        yield
    except RuntimeError as error:
        torch.cuda.set_stream(stream)
        fresh = torch.Generator(device)
        fresh.set_state(state)
        generator.graphsafe_set_state(fresh)
        if out_of_memory(error):
            raise
        raise NotRecorded(str(error).split("\n", 1)[0]) from error


@contextmanager
def undisturbed() -> Iterator[None]:
    """Collect no garbage: a graph of before that is freed in the midst ends a recording (pytorch/pytorch#161037)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


record: Callable[[Work, Sequence[nn.Parameter], Sequence[torch.Tensor]], Recording] = Graph
"""How work is recorded."""
