"""The forms that make a Gram matrix of gradients, the models they are timed on, and how seconds and bytes are taken."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from audits.gradients.capture import exact
from audits.gradients.gram import CHUNK, MEMORY, gram
from audits.gradients.model_copies import contiguous
from audits.models import make_model
from audits.seeds import derive_seed, torch_generator
from audits.training.engines.base import opacus
from benchmarks.resident import resident_bytes

CLASSES = 10
AT_ONCE = 128
"""Points of one backward pass of Opacus, and of the engine on a GPU."""


@dataclass(frozen=True)
class Case:
    """``sizes``: the N at which all forms run; ``growth``: those of the engine alone; ``memory``: what it may hold."""

    model: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    growth: tuple[int, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)
    memory: int = MEMORY
    dtype: torch.dtype = torch.float64
    chunk: int = CHUNK


SMALL = (1, 14, 14)
CASES = {
    "cpu": (
        Case("mlp", SMALL, (256, 1024)),
        Case("cnn", SMALL, (256, 1024), (256, 512, 1024, 2048, 4096)),
    ),
    # GroupNorm in place of BatchNorm, which Opacus refuses in every mode; as many parameters.
    "cuda": (
        Case(
            "resnet18", (3, 32, 32), (256,), (256, 512, 1024), {"norm": "group"}, 2**34, torch.float32, AT_ONCE
        ),
    ),
}  # fmt: skip

Problem = tuple[nn.Module, torch.Tensor, torch.Tensor]
Form = Callable[[Case, nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


def problem(case: Case, n: int, device: str) -> Problem:
    """Return a model in eval mode and n points with labels."""
    model = make_model(case.model, case.settings).build(case.shape, CLASSES, 0)
    generator = torch_generator(derive_seed(0, "benchmark gnq gram", case.model, n))
    x = torch.rand(n, *case.shape, generator=generator, dtype=torch.float64).to(device, case.dtype)
    y = torch.randint(CLASSES, (n,), generator=generator).to(device)
    return contiguous(model).to(device, case.dtype).eval(), x, y


def engine(case: Case, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return K (n, n) by the engine."""
    return gram(model, x, y, chunk=case.chunk, dtype=case.dtype, memory=case.memory)


def one_by_one(case: Case, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return K (n, n) from one backward pass a point."""

    def gradients() -> Iterator[list[torch.Tensor]]:
        for point, label in zip(x, y, strict=True):
            loss = F.cross_entropy(model(point[None]), label[None])
            yield [gradient[None] for gradient in torch.autograd.grad(loss, list(model.parameters()))]

    return multiplied(gradients(), model, len(x))


def by_opacus(case: Case, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return K (n, n) from the gradients that Opacus' hooks leave."""
    hooked = opacus("grad_sample").GradSampleModule(model, loss_reduction="sum")
    hooked.train()  # it is silent in eval mode; nothing in these models behaves otherwise

    def gradients() -> Iterator[list[torch.Tensor]]:
        for points, labels in zip(x.split(AT_ONCE), y.split(AT_ONCE), strict=True):
            F.cross_entropy(hooked(points), labels, reduction="sum").backward()
            yield [vars(parameter)["grad_sample"] for parameter in model.parameters()]
            hooked.zero_grad(set_to_none=True)

    found = multiplied(gradients(), model, len(x))
    hooked.to_standard_module().eval()
    return found


def multiplied(gradients: Iterator[list[torch.Tensor]], model: nn.Module, n: int) -> torch.Tensor:
    """Return K (n, n) float64 of gradients that come for some points at a time, (some, ...) a parameter."""
    parameters = list(model.parameters())
    G = [each.new_empty(n, each.numel(), requires_grad=False) for each in parameters]
    low = 0
    for part in gradients:
        for whole, rows in zip(G, part, strict=True):
            whole[low : low + len(rows)] = rows.flatten(1)
        low += len(part[0])
    K = torch.zeros(n, n, dtype=torch.float64, device=G[0].device)
    for whole in G:
        numbers = whole.double()
        K.addmm_(numbers, numbers.T)
    return K


FORMS: dict[str, Form] = {"engine": engine, "one pass a point": one_by_one, "Opacus": by_opacus}
PLAIN = tuple(FORMS)[1:]


def timed(run: Callable[[], object], device: str) -> float:
    """Return the seconds of one run: CPU time of the process on a CPU, wall time on a GPU."""
    gpu = device.startswith("cuda")
    clock = time.perf_counter if gpu else time.process_time
    if gpu:
        torch.cuda.synchronize(device)
    start = clock()
    run()
    if gpu:
        torch.cuda.synchronize(device)
    return clock() - start


def peak(case: Case, form: str, n: int, device: str, threads: int, apart: bool) -> int:
    """Return ``peak_bytes``, on a CPU from a process of its own."""
    if not apart or device.startswith("cuda"):
        return peak_bytes(case, form, n, device, threads)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(peak_bytes, case, form, n, device, threads).result()


def peak_bytes(case: Case, form: str, n: int, device: str, threads: int) -> int:
    """Return how far memory grows during one run of ``form`` over what model and points take.

    On a CPU the resident memory of the whole process, so call it in a fresh one; on a GPU torch's allocations.
    """
    torch.set_num_threads(threads)
    with exact(torch.device(device)):
        model, x, y = problem(case, n, device)
        FORMS[form](case, model, x[:2], y[:2])  # pays for start-up
        if device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats(device)
            before = torch.cuda.memory_allocated(device)
            FORMS[form](case, model, x, y)
            return torch.cuda.max_memory_allocated(device) - before
        before = resident_bytes(reset=True)
        FORMS[form](case, model, x, y)
        return resident_bytes() - before
