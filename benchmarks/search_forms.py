"""Two forms of one search: the batched one that audits use, and the naive one of the method's public reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from audits.apollo.evidence.search import search, step_in_shell
from benchmarks.resident import resident_bytes
from benchmarks.search_cases import Case, Problem, make_problem

Form = Callable[[Problem], tuple[torch.Tensor, torch.Tensor]]
"""Returns x' (K, 2, T, D) and the mean confidence of the true label (K, 2, T) over the shadows outside."""


def batched(problem: Problem) -> tuple[torch.Tensor, torch.Tensor]:
    """Search as audits do: all candidates and both directions through one shadow at a time, input gradients only."""
    for model in problem.models():
        model.requires_grad_(False)
    shadows = problem.shadows
    trace = search(
        shadows,
        problem.x,
        problem.y,
        problem.start,
        problem.settings,
        value_range=problem.value_range,
        chunk=problem.chunk,
    )
    outside = ~shadows.inside[:, :, None, None]
    return trace.inputs, (trace.confidence * outside).sum(0) / outside.sum(0)


def naive(problem: Problem) -> tuple[torch.Tensor, torch.Tensor]:
    """Search as the public reference does: batch 1, one candidate and direction at a time, weight gradients added up.

    The loss of all shadows is one graph and one ``backward``; the confidences of the shadows outside are computed anew
    at the new point. The step itself is that of the batched form, so that both walk the same way.
    """
    for model in problem.models():
        model.requires_grad_(True)
    settings, inside = problem.settings, problem.shadows.inside
    count, dimensions = problem.x.shape
    inputs = problem.x.new_empty(count, 2, settings.steps, dimensions)
    confidence = problem.x.new_empty(count, 2, settings.steps)
    for k in range(count):
        asked = list(zip(problem.shadows.original, problem.shadows.unlearned, inside[:, k].tolist(), strict=True))
        of_in = [unlearned for _, unlearned, is_in in asked if is_in]
        of_out = [original for original, _, is_in in asked if not is_in]
        origin, truth = problem.x[k].view(1, 1, -1), problem.y[k : k + 1]
        for way, sign in enumerate((1.0, -1.0)):
            moved = origin.clone()
            for t in range(settings.steps):
                point = moved.clone().requires_grad_(True)
                mean_in = mean_entropy(of_in, point, truth, problem.shadows.shape)
                mean_out = mean_entropy(of_out, point, truth, problem.shadows.shape)
                (sign * (settings.alpha * mean_in - settings.beta * mean_out)).backward()
                assert point.grad is not None
                start = problem.start[k, way].view(1, 1, -1)
                moved = step_in_shell(origin, moved, point.grad, start, t, settings, problem.value_range)
                inputs[k, way, t] = moved.view(-1)
                confidence[k, way, t] = mean_confidence(of_out, moved, truth, problem.shadows.shape)
    return inputs, confidence


ENOUGH_CANDIDATES = 16
"""For the naive form's peak memory: each is inside half of the shadows, drawn anew."""

FORMS: dict[str, Form] = {"naive": naive, "batched": batched}


def mean_entropy(
    models: list[nn.Module], point: torch.Tensor, truth: torch.Tensor, shape: tuple[int, ...]
) -> torch.Tensor:
    """Return the mean over ``models`` of the cross entropy at one point."""
    return torch.stack([F.cross_entropy(model(point.view(1, *shape)), truth) for model in models]).mean()


@torch.no_grad()
def mean_confidence(
    models: list[nn.Module], point: torch.Tensor, truth: torch.Tensor, shape: tuple[int, ...]
) -> torch.Tensor:
    """Return the mean over ``models`` of the probability of the true label at one point."""
    return torch.stack([model(point.view(1, *shape)).softmax(1).gather(1, truth.view(1, 1)) for model in models]).mean()


def forget_gradients(problem: Problem) -> None:
    """Free the weight gradients that the naive form leaves behind."""
    for model in problem.models():
        model.zero_grad(set_to_none=True)


def largest_difference(case: Case, device: str) -> float:
    """Return the largest difference between the two forms, in inputs and confidences, in float64 on a small case."""
    small = replace(case, settings=case.small, shadows=4, candidates=3, naive_candidates=3, steps=3, chunk=2)
    problem = make_problem(small, device, torch.float64)
    pairs = zip(naive(problem), batched(problem), strict=True)
    return max(float((one - other).abs().max()) for one, other in pairs)


def peak_bytes(case: Case, form: str, device: str, threads: int) -> int:
    """Return how far memory grows during one run of ``form`` over what the loaded shadows take.

    On a CPU the resident memory of the whole process, so call it in a fresh one; on a GPU torch's allocations. The
    naive form takes one step from so many candidates that nearly every shadow is asked inside and outside.
    """
    torch.set_num_threads(threads)
    problem = make_problem(replace(case, steps=1) if form == "naive" else case, device)
    if form == "naive":
        problem = problem.first(ENOUGH_CANDIDATES)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        FORMS[form](problem)
        return torch.cuda.max_memory_allocated(device) - before
    before = resident_bytes(reset=True)
    FORMS[form](problem)
    return resident_bytes() - before
