"""The time that a GNQ plan with a target will take, tried on a few points, and what would make it shorter."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from audits.data.catalogue import describe
from audits.errors import BadInput, how_many
from audits.gradients.validate import made_auditable
from audits.models.base import make_model
from audits.seeds import torch_generator
from audits.uniqueness.outlook import Outlook, outlook
from orchestrator.engine.durations import seconds

if TYPE_CHECKING:
    from orchestrator.engine.jobs.job import Job
    from orchestrator.gnq.given.plan import GivenPlan

TRIED = 32
"""Points that a look is tried on, at most."""
WIDE = 5e7
"""Numbers in all gradients from which on a look is tried; below that it takes seconds."""
LONG = 120.0
"""Seconds of work from which on a run says beforehand how long it takes."""


def before(plan: GivenPlan, jobs: Sequence[Job], device: str) -> list[str]:
    """Return lines for a run that is about to do ``jobs``: none where its looks are short, or cannot be estimated."""
    tried_looks = [(job, of_look(plan, device, job)) for job in jobs if job.stage == "look"]
    found = {job.key: each for job, each in tried_looks if each is not None}
    total = sum(each.seconds for each in found.values())
    if total < LONG:
        return []
    most = max(each.bytes for each in found.values()) / 2**30
    points = max(job.document["count"] for job in jobs if job.stage == "look")
    controls = sum(found[job.key].seconds for job, _ in tried_looks if job.key in found and job.kind == "controls")
    modes, checkpoints = plan.audit.modes, len(plan.target.checkpoints)
    saved = {
        f"fewer audit.points (now {points}; half of them take a half to a quarter of the time)": (
            total if plan.audit.controls is None else total - controls
        )
        / 2,
        "fewer audit.controls": controls,
        f"audit.modes: [{modes[0]}]": total - sum(each.first for each in found.values()) if len(modes) > 1 else 0.0,
        "fewer checkpoints": total * (1 - 1 / checkpoints),
        "gradients of the last layers alone: a model function of your own that freezes the others "
        "(requires_grad_(False))": total * (1 - last_layer(plan)),
    }
    cheaper = sorted((text for text, each in saved.items() if each > 0), key=lambda text: -saved[text])
    looks = how_many(len(found), "look")
    return [
        f"looking: about {seconds(total)} of work in {looks}, each with up to {most:.1f} GiB of memory",
        f"looking: cheaper, what saves most first: {', '.join(cheaper)}",
    ]


def last_layer(plan: GivenPlan) -> float:
    """Return the share of the trained parameters that the last layer has."""
    facts = describe(plan.data.name, plan.data.root)
    model = plan.model.architecture().build(tuple(facts.shape), len(facts.classes), 0)
    layers = [
        count
        for layer in model.modules()
        if (count := sum(value.numel() for value in layer.parameters(recurse=False) if value.requires_grad))
    ]
    return layers[-1] / sum(layers)


def of_look(plan: GivenPlan, device: str, job: Job) -> Outlook | None:
    """Return what a look takes; None for a small model, and where random inputs do not serve."""
    facts = describe(plan.data.name, plan.data.root)
    settings = json.dumps(plan.model.settings)
    shape, classes, modes = tuple(facts.shape), len(facts.classes), tuple(job.document["modes"])
    compute = plan.compute
    return tried(
        plan.model.name, settings, shape, classes, job.document["count"], modes, compute.chunk, compute.threads, device
    )


@cache
def tried(
    name: str,
    settings: str,
    shape: tuple[int, ...],
    classes: int,
    count: int,
    modes: tuple[str, ...],
    chunk: int,
    threads: int,
    device: str,
) -> Outlook | None:
    """Return what a look at ``count`` points takes with a fresh model, measured once a process."""
    import torch

    model = make_model(name, json.loads(settings)).build(shape, classes, seed=0)
    if count * sum(value.numel() for value in model.parameters() if value.requires_grad) < WIDE:
        return None
    few, generator, before_it = max(2, min(TRIED, chunk, count)), torch_generator(0), torch.get_num_threads()
    x = torch.rand((few, *shape), generator=generator).to(device)
    y = torch.randint(classes, (few,), generator=generator).to(device)
    # Pieces of milliseconds are measured: a clock on the wall counts what other programs do meanwhile, many times over.
    clock = time.process_time if threads == 1 and torch.device(device).type == "cpu" else time.perf_counter
    torch.set_num_threads(threads)
    try:
        auditable = made_auditable(model.to(device))
        try:
            return outlook(auditable, x, y, count, modes, chunk=chunk, clock=clock)
        except BadInput:  # token ids are whole numbers
            return outlook(auditable, x.zero_(), y, count, modes, chunk=chunk, clock=clock)
    except BadInput:  # what is wrong with the model the look will say
        return None
    finally:
        torch.set_num_threads(before_it)
