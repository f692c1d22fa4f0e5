"""A membership plan laid out on its data: pools, and the models of each, in twins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from audits.data.classes import points_of
from audits.data.duplicates import Borders, borders
from audits.data.pools import Pools, draw_pools
from audits.data.twins import draw_twins
from audits.errors import BadInput, how_many
from audits.mia.attacks import MIA_ATTACKS
from audits.mia.canaries import canary_labels
from audits.mia.given_pool import GivenPool, draw_given_pool
from audits.models import MODELS
from audits.seeds import derive_seed, numpy_generator
from orchestrator.engine.plan.errors import under
from orchestrator.engine.plan.fits import class_indices

if TYPE_CHECKING:
    from audits.arrays import Bools, Ids
    from audits.data.dataset import Dataset
    from audits.mia.canaries import Canaries
    from audits.training.recipe import Recipe
    from orchestrator.engine.jobs.job import Reference
    from orchestrator.engine.plan.sections import Model
    from orchestrator.mia.plan import MiaPlan

Group = Literal["target", "own", "shadow"]
"""``own``: twins of the plan's recipe, judged beside a given target: the control of what attacks can see."""
GIVEN = "0-target-0"
"""The name of the given model among those of a plan with a target."""


@dataclass(frozen=True)
class Fitted:
    """One model of a pool: ``half`` (2n,) bool says which of the pool's points it trains on.

    ``index`` counts within the group; models 2i and 2i + 1 are twins.
    """

    name: str
    pool: int
    group: Group
    index: int
    half: Bools
    seed: int


class MiaDesign(ABC):
    """Lays one plan out on one data set."""

    if TYPE_CHECKING:
        plan: MiaPlan
        data: Dataset
        device: str

    @abstractmethod
    def trained(self, model: Fitted) -> Reference:
        """Return where a model stands in the store."""

    @abstractmethod
    def ask_key(self, pool: int) -> str:
        """Return the key of the answers of a pool's models."""

    @abstractmethod
    def walk_key(self, pool: int) -> str:
        """Return the key of the distances of a pool's judged models."""

    @property
    @abstractmethod
    def known_points(self) -> Mapping[str, Ids]:
        """The members and non-members of a given target, by field of the plan's section ``target``."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know about the design: nothing beside the plan's own warnings."""
        return ()

    def borders(self) -> Borders:
        """Return what is kept apart: test points, and each point of the pools, on either side of twins."""
        parts = [self.drawn.test, *([] if self.given is None else [self.given.filler])]
        return borders(len(self.data), parts, self.drawn.pools.ravel(), self.data.groups)

    @cached_property
    def classes(self) -> tuple[int, ...]:
        """The indices of the classes that take part."""
        return class_indices(self.plan.split.classes, self.data.classes, "split.classes")

    @cached_property
    def drawn(self) -> Pools:
        """The points of the pools, and the test points; raises BadInput when they do not suffice or to be grouped."""
        split = self.plan.split
        if self.given is not None:
            return Pools(self.given.pool[None], self.given.test)
        ids = points_of(self.data.labels, self.classes)
        return draw_pools(ids, split.pools, split.train_size, split.test, self.plan.seed, self.data.groups)

    @cached_property
    def given(self) -> GivenPool | None:
        """The pool of a given target; None where the plan trains its targets."""
        import numpy as np

        if self.plan.target is None:
            return None
        ids = points_of(self.data.labels, self.classes)
        members, others = self.known_points["members"], self.known_points["non_members"]
        if left_out := len(members) - len(kept := np.intersect1d(members, ids)):
            raise BadInput(
                f"target.members has {how_many(left_out, 'point')} of classes that split.classes leaves out; name "
                "the classes that the model was trained on, or null for all"
            )
        split = self.plan.split
        return draw_given_pool(kept, np.intersect1d(others, ids), split.train_size, split.test, self.plan.seed)

    @property
    def target_classes(self) -> int:
        """How many classes a given target tells apart: those of the plan."""
        return len(self.classes)

    def asked_points(self) -> Ids:
        """Return the points about which a given target is asked: those of the pool, and test points."""
        import numpy as np

        return np.unique(np.concatenate([self.drawn.pools.ravel(), self.drawn.test]))

    def trained_on(self, model: Fitted) -> Ids:
        """Return the ids of the points that a model trains on: of its half, and those that all models train on."""
        import numpy as np

        half = self.drawn.pools[model.pool][model.half]
        return half if self.given is None else np.sort(np.concatenate([half, self.given.filler]))

    @cached_property
    def models(self) -> dict[str, Fitted]:
        """All models by name, pool by pool, targets first; the given target is one of them, and is never trained."""
        found, split = {}, self.plan.split
        if self.given is not None:
            found[GIVEN] = Fitted(GIVEN, 0, "target", 0, self.given.member, 0)
        for pool in range(split.pools):
            together = None if self.data.groups is None else self.data.groups[self.drawn.pools[pool]]
            judged: Group = "target" if self.given is None else "own"
            groups: tuple[tuple[Group, int], ...] = ((judged, 2), ("shadow", split.shadows))
            for group, count in groups:
                for pair in range(count // 2):
                    twins = draw_twins(self.drawn.pools.shape[1], self.plan.seed, pool, group, pair, groups=together)
                    for side in range(2):
                        index = 2 * pair + side
                        name = f"{pool}-{group}-{index}"
                        found[name] = Fitted(name, pool, group, index, twins.half[side], twins.seeds[side])
        return found

    def of(self, pool: int, group: Group) -> list[Fitted]:
        """Return the models of a group of a pool, twins in turn."""
        return [model for model in self.models.values() if model.pool == pool and model.group == group]

    def null_models(self, pool: int) -> list[Fitted]:
        """Return judged models that saw no point of the pool: targets of the pools behind it, in turn."""
        return self.elsewhere(pool, "target", self.plan.split.null_models)

    def strangers(self, pool: int) -> list[Fitted]:
        """Return the attacker's models that saw no point of the pool: shadows of the others, a pair of each in turn."""
        return self.elsewhere(pool, "shadow", self.plan.split.strangers)

    def elsewhere(self, pool: int, group: Group, wanted: int) -> list[Fitted]:
        """Return ``wanted`` models of a group of other pools: the first pair of each, then the second of each."""
        pools = self.plan.split.pools
        found = [self.of((pool + step) % pools, group) for step in range(1, pools)]
        pairs = max((len(models) for models in found), default=0) // 2
        return [model for pair in range(pairs) for models in found for model in models[2 * pair : 2 * pair + 2]][
            :wanted
        ]

    def models_judged(self, pool: int) -> list[Fitted]:
        """Return the models that attacks judge at the points of a pool: its targets, then null or own models."""
        return [*self.of(pool, "target"), *self.null_models(pool), *self.of(pool, "own")]

    def taught(self, pool: int) -> Canaries:
        """Return the classes of a pool's points as models are taught them, and which are canaries."""
        labels = self.labels(self.drawn.pools[pool])
        seed = derive_seed(self.plan.seed, "mia pool", pool)
        return canary_labels(labels, self.plan.split.canaries, len(self.classes), seed)

    def boundary_points(self, pool: int) -> Ids:
        """Return the places (D,) in a pool of the points that are asked with hundreds of labels: no canaries.

        Half of them are members of a given target, so that no luck decides how well its promised rates are resolved.
        """
        import numpy as np

        ordinary = np.flatnonzero(~self.taught(pool).planted)
        order = numpy_generator(derive_seed(self.plan.seed, "mia asked", pool)).permutation(ordinary)
        count = self.plan.audit.hop_skip_jump.points
        if self.given is not None:
            member = self.given.member[order]
            order = np.concatenate([order[member][: count // 2], order[~member][: count - count // 2]])
        return np.sort(order[:count])

    def known_asked(self, pool: int) -> Ids:
        """Return the places among the test points of the known non-members that are asked with hundreds of labels.

        Others for each pool, so that intervals over pools cover the luck of a threshold.
        """
        order = numpy_generator(derive_seed(self.plan.seed, "mia known", pool)).permutation(len(self.drawn.test))
        return order[: self.plan.audit.hop_skip_jump.points]

    @property
    def walks(self) -> bool:
        """Does an attack of the plan ask hundreds of labels a point?"""
        return any(MIA_ATTACKS[name].subset for name in self.plan.audit.attacks)

    def labels(self, ids: Ids) -> Ids:
        """Return the classes of points, counted among the classes that take part."""
        import numpy as np

        return np.searchsorted(np.asarray(self.classes), self.data.labels[ids]).astype(np.int64)

    def model_of(self, model: Fitted) -> Model:
        """Return the architecture of a model: shadows may have one of their own."""
        return self.plan.model if model.group != "shadow" else self.plan.shadow_model or self.plan.model

    def recipe_of(self, model: Fitted) -> Recipe:
        """Return the recipe of a model: shadows may have one of their own."""
        return self.plan.recipe if model.group != "shadow" else self.plan.shadow_recipe or self.plan.recipe

    def architecture(self, model: Fitted) -> tuple[type]:
        """Return the class of the architecture of a model."""
        return (MODELS[self.model_of(model).name],)

    @property
    def architectures(self) -> tuple[type, ...]:
        """The classes of the architectures that take part."""
        names = (self.plan.model.name, (self.plan.shadow_model or self.plan.model).name)
        return tuple(MODELS[name] for name in dict.fromkeys(names))

    def build(self, model: Fitted, seed: int) -> Any:
        """Return an untrained model of the architecture of ``model``."""
        try:
            return self.model_of(model).architecture().build(self.data.shape, len(self.classes), seed)
        except BadInput as error:
            raise BadInput(under("model" if model.group != "shadow" else "shadow_model", str(error))) from None
