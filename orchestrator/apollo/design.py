"""The plan as a design on its data: who trains on what, with which architecture, and which points are asked about."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.apollo.design.given import check_forget, given_partition, given_split
from audits.apollo.design.partition import make_partition, ranked_pool, ranking_members
from audits.apollo.design.pools import check_grouping
from audits.data.duplicates import Borders, borders
from audits.data.ids import Points
from audits.models import MODELS
from orchestrator.apollo.plan import CONTROLS
from orchestrator.engine.given import GivenJobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from audits.apollo.design.partition import Member, Partition, Split
    from audits.arrays import Ids
    from audits.data.dataset import Dataset
    from audits.training.recipe import Recipe
    from orchestrator.apollo.plan import ApolloPlan, UnlearningMethod
    from orchestrator.engine.jobs.job import Reference
    from orchestrator.engine.plan.sections import Model


class ApolloDesign(GivenJobs):
    """Lays one plan out on one data set: models, shadow sets, candidates and their shards."""

    if TYPE_CHECKING:
        plan: ApolloPlan
        data: Dataset
        device: str

    @cached_property
    def split(self) -> Split:
        """The sizes of the plan's split, classes by index. Raises BadInput where groups cannot be kept whole."""
        found = self.plan.split.design(self.data.classes, Points.of(self.data, self.plan.data.root))
        if self.plan.target is not None:
            return given_split(found, self.given_points, self.plan.target.around)
        if self.data.groups is not None:
            check_grouping(found)
        return found

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The plan as plain values."""
        return self.plan.resolved()

    @cached_property
    def partition(self) -> Partition:
        """The design that the plan's split and seed give on this data set. Raises BadInput before points are ranked."""
        if self.plan.target is not None:
            return given_partition(self.split, self.plan.seed, self.given_points, self.plan.target.around)
        ranking = self.ranking() if self.ranked else None
        return make_partition(
            len(self.data),
            self.split,
            self.plan.seed,
            labels=self.data.labels,
            ranking=ranking,
            groups=self.data.groups,
        )

    def read_points(self) -> dict[str, Ids]:
        """Return the given lists of points; raises BadInput where points were forgotten that are no members."""
        return check_forget(super().read_points())

    @property
    def given_code(self) -> tuple[type, ...]:
        """The class of the architecture of given models: that of the plan's targets."""
        return (MODELS[self.plan.model.name],)

    def asked_points(self) -> Ids:
        """Return the points about which a given target is asked: what it retains and forgot, test, candidates."""
        found = self.partition
        lists = [each for member in self.targets for each in (member.retain, member.forget)]
        asked: Ids = np.unique(np.concatenate([*lists, found.test, *(each.ids for each in found.candidates)]))
        return asked

    def is_given(self, member: Member, entry: UnlearningMethod) -> bool:
        """Is the model of ``member`` after ``entry`` one that the plan is given?

        Controls are the plan's own, but for ``identity`` where the target's original is given: what attacks see in it
        shows that this model had learnt what it was to forget.
        """
        target = self.plan.target
        if target is None or member.role != "target":
            return False
        return entry.method not in CONTROLS or (entry.method == "identity" and target.original is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know about the partition."""
        return self.partition.warnings

    def borders(self) -> Borders:
        """Return what is kept apart: each target's forget and retain set, the halves, test points, each candidate."""
        found = self.partition
        halves = [
            np.unique(np.concatenate([member.train for member in found.members if member.group == group]))
            for group in (1, 2)
        ]
        forgotten, retained = ([getattr(one, name) for one in self.targets] for name in ("forget", "retain"))
        asked = np.unique(np.concatenate([candidates.ids for candidates in found.candidates]))
        parts = [*forgotten, *retained, *halves, found.test]
        return borders(len(self.data), parts, asked, self.data.groups, mates=[*forgotten, *retained])

    @property
    def ranked(self) -> bool:
        """Does the partition need a ranking of the points?"""
        return self.plan.split.points != "random"

    @property
    def exposed(self) -> bool:
        """Are the points ranked by exposure, by models that are watched while they train, and not by a population?"""
        return self.plan.split.points == "exposed"

    @cached_property
    def ranking_members(self) -> dict[str, Member]:
        """The models that rank the points by name; none when nothing is ranked."""
        members = ranking_members(len(self.data), self.split, self.plan.seed) if self.ranked else ()
        return {member.name: member for member in members}

    def ranked_points(self) -> Any:
        """Return the ids (n,) of the points that are ranked."""
        return ranked_pool(len(self.data), self.split, self.plan.seed)

    @abstractmethod
    def trained(self, member: Member) -> Reference:
        """Return where the trained model of ``member`` stands."""

    @abstractmethod
    def unlearned(self, member: Member, entry: UnlearningMethod) -> Reference:
        """Return where the unlearned model of ``member`` stands; ``identity`` is the model before unlearning itself."""

    @cached_property
    def by_label(self) -> dict[str, UnlearningMethod]:
        """The plan's unlearning methods by label."""
        return {entry.label: entry for entry in self.plan.unlearning}

    @cached_property
    def names_in_seeds(self) -> dict[str, str]:
        """The names by which the plan's unlearning methods draw at random, by label."""
        return names_in_seeds(self.plan.unlearning)

    @abstractmethod
    def before(self, member: Member, entry: UnlearningMethod) -> Reference | None:
        """Return where the model stands that ``unlearned`` was made of; None where nobody has it."""

    @abstractmethod
    def own_start(self, member: Member) -> Reference:
        """Return where the target stands that was trained again from its own start, without its forget set."""

    @property
    def retraining(self) -> UnlearningMethod:
        """The plan's control ``retrain``, the first of that name."""
        return next(entry for entry in self.plan.unlearning if entry.method == "retrain")

    @property
    def budget(self) -> int:
        """Label queries per candidate of kinds that choose as they go: by default as many as Apollo asks."""
        return self.plan.audit.query_budget

    @abstractmethod
    def ranking(self) -> Any:
        """Return memorisation or exposure (N,) of the data's points, NaN where not ranked; None before it is known."""

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """The models of the partition by name."""
        return {member.name: member for member in self.partition.members}

    def member(self, name: str) -> Member:
        """Return a model of the ranking population or of the partition."""
        return self.ranking_members[name] if name in self.ranking_members else self.by_name[name]

    @property
    def targets(self) -> tuple[Member, ...]:
        """The target models of the design."""
        return tuple(member for member in self.partition.members if member.role == "target")

    def targets_of(self, shadow_set: int) -> tuple[Member, ...]:
        """Return the targets that a shadow set serves."""
        return self.partition.select("target", shadow_set)

    def groups(self, role: str, shadow_set: int) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
        """Return the shadows of both halves that searches use: all, or the first of each (``search.shadows``).

        ``role``: "online" or "offline".
        """
        stored: Any = "shadow" if role == "online" else role
        wanted = self.plan.audit.search.shadows if role == "online" else None
        first, second = (self.partition.select(stored, shadow_set, group) for group in (1, 2))
        return (first[: wanted // 2], second[: wanted // 2]) if wanted else (first, second)

    def shards(self, shadow_set: int) -> int:
        """Return the number of shards into which the candidates of a shadow set are cut."""
        return -(-len(self.partition.candidates[shadow_set].ids) // self.plan.compute.chunk)

    def rows(self, shadow_set: int, shard: int) -> slice:
        """Return the candidates of one shard."""
        chunk = self.plan.compute.chunk
        return slice(shard * chunk, min((shard + 1) * chunk, len(self.partition.candidates[shadow_set].ids)))

    def population(self) -> Any:
        """Return the ids of points that no model trained on and no candidate is: the first of the test points."""
        return self.partition.test[: self.plan.audit.population]

    def model_of(self, member: Member) -> Model:
        """Return the architecture of ``member``: shadows may have one of their own."""
        return self.plan.model if is_target_like(member) else self.plan.shadow_model or self.plan.model

    def recipe_of(self, member: Member) -> Recipe:
        """Return the recipe of ``member``: shadows may have one of their own."""
        return self.plan.recipe if is_target_like(member) else self.plan.shadow_recipe or self.plan.recipe

    def fitting(self, member: Member) -> dict[str, Any]:
        """Return architecture and recipe of ``member`` as plain values."""
        own = "" if is_target_like(member) else "shadow_"
        return {name: self.resolved[own + name] or self.resolved[name] for name in ("model", "recipe")}

    def architectures(self) -> tuple[type, ...]:
        """Return the classes of the architectures that take part."""
        names = (self.plan.model.name, (self.plan.shadow_model or self.plan.model).name)
        return tuple(MODELS[name] for name in dict.fromkeys(names))

    def architecture(self, member: Member) -> tuple[type]:
        """Return the class of the architecture of ``member``."""
        return (MODELS[self.model_of(member).name],)


def is_target_like(member: Member) -> bool:
    """Is this model made as targets are? The auditor's ranking population is; shadows are the attacker's."""
    return member.role in ("target", "ranking")


def names_in_seeds(methods: Sequence[UnlearningMethod]) -> dict[str, str]:
    """Return label → the name by which a method draws at random: its own, whatever ``as`` calls it.

    A mere rename so draws nothing anew. Where a plan has one method with the same settings several times, the others
    are repetitions, which draw by the names that they were given.
    """
    found = {}
    for entry in methods:
        same = [each for each in methods if (each.method, each.settings) == (entry.method, entry.settings)]
        first = next((each for each in same if each.given_label is None), same[0])
        found[entry.label] = type(entry)(method=entry.method).label if entry == first else entry.label
    return found
