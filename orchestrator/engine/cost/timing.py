"""The time of one training step here: a few steps on random data, when the store knows no model like the plan's.

Images that stay encoded are decoded beside that, as often as a job asks for them, and each job has a price of its own.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from audits.data.catalogue import describe
from audits.data.tensors import TensorSet
from audits.data.undecoded import too_large
from audits.seeds import torch_generator
from audits.training.fit import fit
from orchestrator.engine.cost.decoding import image_seconds
from orchestrator.engine.timings import Timings

if TYPE_CHECKING:
    from torch import nn

    from audits.training.recipe import Recipe
    from orchestrator.engine.jobs.job import Job
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.plan.sections import Model

STEPS = 8  # timed at the most, beside the first
SECONDS = 2.0  # that those may take; a model whose first step takes longer is timed by that one
WARM_UP = 2  # points of the step that is not timed: it pays for imports and start-up
JOB_SECONDS = 0.015  # what a job costs beside its work, above all to read its inputs and to store its artefact
FORWARD = 1 / 3  # share of a training step that its forward pass takes
LOOK = 4  # training steps on as many points that a look at all points' gradients is about worth, for each mode


class TrainingProbe(ABC):
    """Seconds per unit, guessed from a few training steps of the plan's models on random data of the right shape.

    ``timings``: what was measured, for probes of other plans to share; each kind of step is timed once.
    """

    makes_models: ClassVar[tuple[str, ...]]
    """Stages whose artefacts are models."""

    def __init__(self, plan: Any, device: str, timings: Timings | None = None) -> None:
        self.plan = plan
        self.device = device
        self.timings = Timings() if timings is None else timings

    @abstractmethod
    def fitting(self, job: Job) -> tuple[Model, Recipe]:
        """Return architecture and recipe of the models that a job makes, or mostly reads."""

    @abstractmethod
    def steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a job in training steps of the recipe's batch size."""

    def size(self, job: Job) -> int:
        """Return the bytes of a job's artefact: those of a model, or nothing worth counting."""
        return self.measure(*self.fitting(job))[1] if job.stage in self.makes_models else 0

    def seconds(self, job: Job) -> float:
        """Return the seconds that a job takes on one worker: its training steps, or passes of about as many points.

        Images that are decoded count beside them, unless a throughput is stated, which includes them.
        """
        model, recipe = self.fitting(job)
        computed = self.measure(model, recipe)[0] * self.steps(job, recipe)
        if self.timings.images_per_second is not None:
            return computed
        return computed + self.images(job, recipe) * self.image_seconds() + JOB_SECONDS

    def images(self, job: Job, recipe: Recipe) -> float:
        """Return how many images a job decodes if the plan's data stay encoded: those that a model trains on."""
        count = int(job.document.get("count", self.points()))
        return float(count * self.readings(recipe)) if job.stage in self.makes_models else 0.0

    def readings(self, recipe: Recipe) -> int:
        """Return how often a training decodes each of its images: once, or anew in every epoch."""
        facts = describe(self.plan.data.name, self.plan.data.root)
        anew = recipe.random_crop is not None or too_large((self.points(), *facts.shape), "cpu")
        return recipe.epochs if anew else 1

    def image_seconds(self) -> float:
        """Return the CPU seconds in which an image is decoded, measured once."""
        kind = ("image", self.plan.data.name, self.plan.data.root)
        if kind not in self.timings.found:
            self.timings.found[kind] = image_seconds(self.plan), 0
        return self.timings.found[kind][0]

    def measure(self, model: Model, recipe: Recipe) -> tuple[float, int]:
        """Return (seconds per training step, bytes of the model's parameters and buffers), measured once."""
        timed = timeable(recipe, self.points())
        kind = (self.plan.data.name, model.model_dump_json(), timed, self.plan.compute.threads, self.device)
        if kind not in self.timings.found:
            stated = self.timings.images_per_second
            self.timings.found[kind] = (
                time_steps(self.plan, model, timed, self.device)
                if stated is None
                else (timed.batch_size / stated, model_bytes(fresh(self.plan, model)))
            )
        return self.timings.found[kind]

    def points(self) -> int:
        """Return the points of a training set, which are the most that a step can have."""
        return int(self.plan.split.train_size)


def timeable(recipe: Recipe, points: int) -> Recipe:
    """Return ``recipe`` without what leaves a step's time as it is: rates that could diverge, and a budget of ε.

    Images are taken to be there. A step of a user's own training is taken to last as long as one of our loop.
    """
    plain = dataclasses.replace(
        recipe,
        epochs=1,
        learning_rate=1e-6,
        batch_size=min(recipe.batch_size, points),
        fit=None,
        settings={},
        random_crop=None,
    )
    return dataclasses.replace(plain, noise_multiplier=1.0, target_epsilon=None) if recipe.private else plain


def time_steps(plan: BasePlan, model: Model, recipe: Recipe, device: str) -> tuple[float, int]:
    """Return (seconds per training step, bytes of one model) from short fits on random data of the plan's shape.

    The median of the first step and of those that ``SECONDS`` leave time for; of one thread on a CPU its own time, so
    that what else the machine does at the moment does not count.
    """
    import torch

    facts = describe(plan.data.name, plan.data.root)
    built = fresh(plan, model).to(device)
    generator = torch_generator(0)
    x = torch.rand((recipe.batch_size, *facts.shape), generator=generator).to(device)
    y = torch.randint(len(facts.classes), (recipe.batch_size,), generator=generator).to(device)
    clock = time.process_time if device == "cpu" and plan.compute.threads == 1 else time.perf_counter
    threads = torch.get_num_threads()
    torch.set_num_threads(plan.compute.threads)
    try:
        step_seconds(built, TensorSet(x[:WARM_UP], y[:WARM_UP]), recipe, 1, clock)
        seconds = step_seconds(built, TensorSet(x, y), recipe, 1, clock)
        if more := min(STEPS, int(SECONDS / max(seconds[0], 1e-6))):
            seconds += step_seconds(built, TensorSet(x, y), recipe, more, clock)
    finally:
        torch.set_num_threads(threads)
    return statistics.median(seconds), model_bytes(built)


def fresh(plan: BasePlan, model: Model) -> nn.Module:
    """Return a new model for the plan's data."""
    facts = describe(plan.data.name, plan.data.root)
    return model.architecture().build(facts.shape, len(facts.classes), seed=0)


def model_bytes(model: nn.Module) -> int:
    """Return the bytes of a model's parameters and buffers."""
    return sum(value.numel() * value.element_size() for value in model.state_dict().values())


def step_seconds(
    model: nn.Module, batch: TensorSet, recipe: Recipe, steps: int, clock: Callable[[], float]
) -> list[float]:
    """Return the seconds of each of ``steps`` training steps on one batch, by ``clock``."""
    times = [clock()]
    epochs = dataclasses.replace(recipe, epochs=steps)  # one step each
    fit(model, batch, epochs, seed=0, observers=(lambda report: times.append(clock()),))
    return [end - begin for begin, end in pairwise(times)]
