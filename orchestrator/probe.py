"""How long one training step takes here: a few steps on random data, when the store knows no model like the plan's."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.jobs import Job
    from orchestrator.plan import Plan

STEPS = 8


class Probe:
    """Seconds per unit, guessed from a few training steps of the plan's model on random data of the right shape."""

    def __init__(self, plan: Plan, device: str) -> None:
        self.plan = plan
        self.device = device
        self.measured: tuple[float, int] | None = None

    def measure(self) -> tuple[float, int]:
        """Return (seconds per training step, bytes of the model's parameters and buffers), measured once."""
        if self.measured is None:
            self.measured = time_steps(self.plan, self.device)
        return self.measured

    def size(self, job: Job) -> int:
        """Return the bytes of a job's artefact: those of a model, or nothing worth counting."""
        return self.measure()[1] if job.stage in ("train", "unlearn") else 0

    def seconds(self, job: Job) -> float:
        """Return the seconds that a job takes on one worker: its training steps, or passes of about as many points."""
        return self.measure()[0] * self.steps(job)

    def steps(self, job: Job) -> float:
        """Return the work of a job in training steps of the recipe's batch size."""
        recipe, split, batch = self.plan.recipe, self.plan.split, self.plan.recipe.batch_size
        training = recipe.epochs * math.ceil(split.train_size / batch)
        match job.stage:
            case "train":
                return training
            case "unlearn" if job.document["method"] == "retrain":
                return training
            case "unlearn":  # an epoch counts as one over the retain set: an upper end
                settings = job.document["settings"]
                epochs = settings.get("epochs", 0) * math.ceil(split.train_size / settings.get("batch_size", batch))
                return float(epochs + settings.get("iterations", 0))
            case "trace" | "search":  # the shadows that are read × the candidates of a shard × two directions × T steps
                shadows = sum(len(group) for role in job.document["original"].values() for group in role)
                steps = self.plan.audit.search.steps if "search" in job.document else 1
                return shadows * 2 * int(job.document["count"]) * steps / batch
            case _:
                return math.ceil((split.train_size + split.test_pool) / batch)


def time_steps(plan: Plan, device: str) -> tuple[float, int]:
    """Return (seconds per training step, bytes of one model) from a short fit on random data of the plan's shape."""
    import torch

    from audits.data.catalogue import describe
    from audits.data.tensors import TensorSet
    from audits.seeds import torch_generator
    from audits.training.loop import fit

    facts = describe(plan.data.name, plan.data.root)
    model = plan.model.architecture().build(facts.shape, len(facts.classes), seed=0).to(device)
    batch = min(plan.recipe.batch_size, plan.split.train_size)
    generator = torch_generator(0)
    x = torch.rand((STEPS * batch, *facts.shape), generator=generator).to(device)
    y = torch.randint(len(facts.classes), (STEPS * batch,), generator=generator).to(device)
    recipe = dataclasses.replace(plan.recipe, epochs=1, batch_size=batch)
    threads = torch.get_num_threads()
    torch.set_num_threads(plan.compute.threads)
    try:
        fit(model, TensorSet(x, y), recipe, seed=0)  # the first pass pays for start-up
        begin = time.perf_counter()
        fit(model, TensorSet(x, y), recipe, seed=0)
        seconds = (time.perf_counter() - begin) / STEPS
    finally:
        torch.set_num_threads(threads)
    return seconds, sum(value.numel() * value.element_size() for value in model.state_dict().values())
