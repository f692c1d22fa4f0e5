"""A GNQ plan laid out on its data: pools, and the models of each, in twins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from audits.data.classes import points_of
from audits.data.duplicates import Borders, borders
from audits.data.pools import draw_pools
from audits.data.twins import draw_twins
from audits.errors import BadInput
from audits.gnq.inversion import WINDOW
from audits.gradients.gram import row_shards
from audits.uniqueness.accumulate import checkpoint_steps, steps_of
from audits.uniqueness.scores import needs_gram
from orchestrator.engine.plan.errors import under
from orchestrator.engine.plan.fits import class_indices
from orchestrator.gnq.plan import READS_MODE, GnqPlan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from audits.data.dataset import Dataset, Description
    from audits.data.pools import Pools
    from orchestrator.engine.jobs.job import Job, Reference

    Ids = NDArray[np.int64]
    Bools = NDArray[np.bool_]

Group = Literal["target", "shadow"]


@dataclass(frozen=True)
class Watched:
    """One model of a pool: ``half`` (2n,) bool says which of the pool's points it trains on.

    ``index`` counts within the group; models 2i and 2i + 1 are twins. ``seed`` is that of its training,
    ``retraining_seed`` that of the one behind a defence.
    """

    name: str
    pool: int
    group: Group
    index: int
    half: Bools
    seed: int
    retraining_seed: int


class GnqDesign(ABC):
    """Lays one plan out on one data set."""

    if TYPE_CHECKING:
        plan: GnqPlan
        data: Dataset
        device: str

    @abstractmethod
    def train_job(self, model: Watched) -> Job:
        """Return the job that trains ``model`` and sees the points that it trains on, or keeps weights for looks."""

    @abstractmethod
    def row_job(self, model: Watched, place: int, shard: int) -> Job:
        """Return the job that makes the rows of one shard of the Gram matrix at a checkpoint of ``model``."""

    @abstractmethod
    def trace_jobs(self, model: Watched) -> list[Job]:
        """Return the jobs that hold what was seen of a model's points: its training, or the looks at it in turn."""

    @abstractmethod
    def made(self, model: Watched, arm: str) -> Reference:
        """Return where the model stands that an arm publishes."""

    def halves(self, models: list[Watched]) -> Any:
        """Return which points of their pool models train on, (M, 2n) bool."""
        import numpy as np

        return np.stack([model.half for model in models])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know about the design: nothing beside the plan's own warnings."""
        return ()

    def borders(self) -> Borders:
        """Return what is kept apart: test points, and each point of the pools, on either side of twins."""
        return borders(len(self.data), [self.drawn.test], self.drawn.pools.ravel(), self.data.groups)

    @cached_property
    def classes(self) -> tuple[int, ...]:
        """The indices of the classes that take part."""
        return class_indices(self.plan.split.classes, self.data.classes, "split.classes")

    @cached_property
    def drawn(self) -> Pools:
        """The points of the pools, and the test points; raises BadInput when they do not suffice or to be grouped."""
        split = self.plan.split
        ids = points_of(self.data.labels, self.classes)
        if self.data.groups is not None and self.plan.audit.held_out:
            raise BadInput(
                f"audit.held_out is {self.plan.audit.held_out}, whose models halve the points of a model whatever "
                "their groups; set it to 0, or leave data.groups out"
            )
        return draw_pools(ids, split.pools, split.train_size, split.test, self.plan.seed, self.data.groups)

    @cached_property
    def models(self) -> dict[str, Watched]:
        """All models by name, pool by pool, targets first."""
        found = {}
        for pool in range(self.plan.split.pools):
            together = None if self.data.groups is None else self.data.groups[self.drawn.pools[pool]]
            groups: tuple[tuple[Group, int], ...] = (("target", 2), ("shadow", self.plan.split.shadows))
            for group, count in groups:
                for pair in range(count // 2):
                    twins = draw_twins(
                        2 * self.plan.split.train_size, self.plan.seed, pool, group, pair, groups=together
                    )
                    for side in range(2):
                        index = 2 * pair + side
                        name = f"{pool}-{group}-{index}"
                        found[name] = Watched(
                            name, pool, group, index, twins.half[side], twins.seeds[side], twins.retraining_seeds[side]
                        )
        return found

    def of(self, pool: int, group: Group) -> list[Watched]:
        """Return the models of a group of a pool, twins in turn."""
        return [model for model in self.models.values() if model.pool == pool and model.group == group]

    def source(self, model: Watched) -> Ids:
        """Return the ids (2n,) of the points among which a model's half, and what a defence keeps of it, are places."""
        found: Ids = self.drawn.pools[model.pool]
        return found

    def points(self, model: Watched) -> Ids:
        """Return the ids of the points that a model trains on, in the pool's order."""
        return self.source(model)[model.half]

    def modes(self, model: Watched) -> tuple[str, ...]:
        """Return the modes of uniqueness that are seen of a model's points: of shadows only what defences rank by."""
        if model.group == "target":
            return self.plan.audit.modes
        read = {READS_MODE.get(defence.ranking or "") for defence in self.plan.defences}
        return tuple(mode for mode in self.plan.audit.modes if mode in read)

    def in_batch(self, model: Watched) -> bool:
        """Return whether a model's batches are looked at too: of shadows only if a defence ranks by that."""
        ranks = any(defence.ranking == "in_batch" for defence in self.plan.defences)
        return self.plan.audit.in_batch and (ranks or model.group == "target")

    def held_out(self, model: Watched) -> int:
        """Return how many models more tell the held-out loss of a model's points: of shadows only for a defence."""
        ranks = any(defence.ranking == "held_out_loss" for defence in self.plan.defences)
        return self.plan.audit.held_out if ranks or model.group == "target" else 0

    def twin(self, model: Watched) -> Watched:
        """Return the model of the other half of the pool."""
        return self.models[f"{model.pool}-{model.group}-{model.index ^ 1}"]

    def seen(self, model: Watched) -> bool:
        """Does anything read what is seen of a model's points? Of shadows only defences that choose points by it."""
        return model.group == "target" or any(defence.method != "dp_sgd" for defence in self.plan.defences)

    @property
    def apart(self) -> bool:
        """Are looks at a training jobs of their own?"""
        return bool(self.plan.audit.looks == "apart")

    @cached_property
    def every(self) -> int:
        """How many steps a model takes between two looks."""
        return max(1, -(-self.total_steps // self.plan.audit.checkpoints))

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """The steps taken before each look at a model's training."""
        return look_steps(self.plan)

    @cached_property
    def matched_looks(self) -> tuple[int, ...]:
        """The places among ``looks`` at which gradients are inverted, in their order; none without that."""
        asked = self.plan.audit.gradient_inversion
        return tuple(sorted(look % len(self.looks) for look in asked.looks)) if asked else ()

    @cached_property
    def total_steps(self) -> int:
        """How many steps the training of a watched model takes."""
        return steps_of(self.plan.recipe, self.plan.split.train_size)

    def shards(self, model: Watched) -> list[tuple[int, int]]:
        """Return which rows of the Gram matrix each shard of a look has; none where it is not cut, or not needed."""
        count = self.plan.audit.look_shards
        return row_shards(self.plan.split.train_size, count) if count > 1 and needs_gram(self.modes(model)) else []

    def points_by_name(self, model: Watched) -> dict[str, Ids]:
        """Return the points at which a model is asked by name: its pool, and one that it never saw for targets.

        The targets of pool s + 1 are the null models of pool s; with one pool there are none.
        """
        pools = self.drawn.pools
        found = {"own": pools[model.pool]}
        if model.group == "target" and len(pools) > 1:
            found["foreign"] = pools[(model.pool - 1) % len(pools)]
        return found

    def null_models(self, pool: int) -> list[Watched]:
        """Return the models that stand for targets under the null hypothesis: they saw no point of the pool."""
        pools = self.plan.split.pools
        return self.of((pool + 1) % pools, "target") if pools > 1 else []

    def labels(self, ids: Ids) -> Ids:
        """Return the classes of points, counted among the classes that take part."""
        import numpy as np

        return np.searchsorted(np.asarray(self.classes), self.data.labels[ids]).astype(np.int64)

    def build(self, seed: int) -> Any:
        """Return an untrained model of the plan's architecture."""
        try:
            return self.plan.model.architecture().build(self.data.shape, len(self.classes), seed)
        except BadInput as error:
            raise BadInput(under("model", str(error))) from None


def look_steps(plan: GnqPlan) -> tuple[int, ...]:
    """Return the steps taken before each look at the training of a watched model of ``plan``."""
    total = steps_of(plan.recipe, plan.split.train_size)
    return checkpoint_steps(total, max(1, -(-total // plan.audit.checkpoints)))


def check_images(plan: GnqPlan, facts: Description | Dataset) -> None:
    """Refuse inversion where points are no images of a bounded range, or too small to be compared by SSIM."""
    if len(facts.shape) == 3 and facts.value_range is not None and min(facts.shape[1:]) >= WINDOW:
        return
    for field in ("inversion", "gradient_inversion"):
        if getattr(plan.audit, field) is not None:
            raise BadInput(
                f"audit.{field}: points of {facts.name} have shape {facts.shape}; allowed: images (channels, height, "
                f"width) of {WINDOW} pixels or more a side, which SSIM needs; set audit.{field} to null"
            )
