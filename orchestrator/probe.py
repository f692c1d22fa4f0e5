"""How long one training step takes here: a few steps on random data, when the store knows no model like the plan's."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

    def model_bytes(self) -> int:
        """Return the bytes of one stored model."""
        return self.measure()[1]

    def train_seconds(self) -> float:
        """Return seconds for one model."""
        recipe, size = self.plan.recipe, self.plan.split.train_size
        return self.measure()[0] * recipe.epochs * math.ceil(size / recipe.batch_size)

    def unlearn_seconds(self) -> float:
        """Return the mean over methods; an epoch of a method counts as one over the retain set (an upper end)."""
        retain = self.plan.split.train_size
        seconds = []
        for entry in self.plan.unlearning:
            epochs, batch = entry.settings.get("epochs", 0), entry.settings.get("batch_size", 64)
            again = self.train_seconds() if entry.method == "retrain" else 0.0
            seconds.append(again or self.measure()[0] * epochs * math.ceil(retain / batch))
        return statistics.fmean(seconds)

    def search_seconds(self) -> float:
        """Return seconds of one unit: all shadows × candidates of a set × both directions × T steps."""
        split, search = self.plan.split, self.plan.audit.search
        rows = 2 * split.targets_per_shadow_set * (split.candidates.forget + split.candidates.unseen)
        batches = (search.shadows or split.shadows) * search.steps * math.ceil(rows / self.plan.recipe.batch_size)
        return self.measure()[0] * batches

    def score_seconds(self) -> float:
        """Return seconds of one unit: a few forward passes, which take less than as many training steps."""
        return self.measure()[0] * (1 + 2 * self.plan.audit.search.steps)


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
