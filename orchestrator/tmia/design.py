"""A TMIA plan laid out on its data: models of both sides, candidates, samples, and how they are cut for work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from audits.data.classes import points_of
from audits.data.duplicates import Borders, borders
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator
from audits.tmia.design import FILLER_FACTOR, SEEDED, make_membership, other_side
from audits.tmia.given_design import make_given_membership
from audits.training.transfer import TORCHVISION_INPUTS, standardised
from orchestrator.engine.data import data_of
from orchestrator.engine.plan.errors import under
from orchestrator.engine.plan.fits import class_indices
from orchestrator.tmia.plan import TmiaPlan, sizes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from audits.data.dataset import Dataset
    from audits.tmia.design import Group, MembershipDesign
    from audits.training.recipe import Recipe
    from orchestrator.engine.jobs.job import Job

    Ids = NDArray[np.int64]

Side = Literal["own", "other"]
GIVEN = "given"
"""The name of the model that a plan is given, which is not trained."""
TEST_POINTS = 2000
MODELS_PER_UNIT = 10
PROXY_POINTS = 1000
FILLER_OF_TEACHERS = 7
"""Training sets that the filler of attack II should hold: with two or three of them null models were called members
more often than promised in two runs on fashion14, with seven in none of the same kind. The cause may be another."""


@dataclass(frozen=True)
class Fitted:
    """One model: ``side`` "own" is trained on the side of the candidates, "other" on that of the transfer.

    ``train`` and ``test`` are point ids of its side's data set; ``teacher`` is the model that it starts from.
    """

    name: str
    side: Side
    group: Group
    index: int
    train: Ids
    test: Ids
    teacher: str = ""


class TmiaDesign(ABC):
    """Lays one plan out on one data set: ``other`` is that of the transfer's other side."""

    if TYPE_CHECKING:
        plan: TmiaPlan
        data: Dataset
        device: str

        @property
        def given_points(self) -> dict[str, Ids]:
            """The points that the target names, by field."""

    @abstractmethod
    def train_job(self, model: Fitted) -> Job:
        """Return the job that trains ``model``, from its teacher if it has one, or brings in the one that is given."""

    @abstractmethod
    def read_points(self) -> dict[str, Ids]:
        """Return the points that the target names, by field, as its files say them."""

    @abstractmethod
    def query_job(self, kind: str, group: Group, unit: int, shard: int) -> Job:
        """Return the job that asks one unit of models one kind of question about one shard of candidates."""

    @abstractmethod
    def select_job(self) -> Job:
        """Return the job that scores candidates by every selector and puts them into an order."""

    @abstractmethod
    def reference_posteriors(self) -> list[str]:
        """Return the keys of the answers of reference models about candidates and samples."""

    @cached_property
    @abstractmethod
    def posterior_jobs(self) -> tuple[Job, ...]:
        """The jobs that read posteriors of all models."""

    @abstractmethod
    def looked_models(self, group: Group, unit: int) -> list[Fitted]:
        """Return the unit of models of a group whose weights are looked into."""

    @cached_property
    @abstractmethod
    def fit_point_jobs(self) -> tuple[Job, ...]:
        """The jobs that read posteriors of reference models at the points of the fit."""

    @cached_property
    @abstractmethod
    def look_jobs(self) -> tuple[Job, ...]:
        """The jobs that look into the weights of models."""

    @property
    @abstractmethod
    def paired(self) -> dict[Group, int | None]:
        """Groups, and how many of their models, whose distances at the attacker's own points a map is fitted to."""

    @cached_property
    def other(self) -> Dataset:
        """The data set of the other side: the plan's own unless ``transfer.data`` names one."""
        given = self.plan.transfer.data
        return data_of(given.name, given.root) if given else self.data

    def data_of_side(self, side: Side) -> Dataset:
        """Return the data set of a side."""
        return self.data if side == "own" else self.other

    def classes(self, side: Side) -> tuple[int, ...]:
        """Return the indices of the classes that take part at a side."""
        if side == "own":
            return class_indices(self.plan.split.classes, self.data.classes, "split.classes")
        return class_indices(self.plan.transfer.classes, self.other.classes, "transfer.classes")

    def points(self, side: Side) -> Ids:
        """Return the ids of a side's points: those of its classes."""
        return points_of(self.data_of_side(side).labels, self.classes(side))

    @cached_property
    def sets(self) -> MembershipDesign:
        """Who trains on which candidates; raises BadInput when the points do not suffice."""
        target = self.plan.target
        if target is not None:
            members, others = self.known("members"), self.known("non_members")
            return make_given_membership(members, others, sizes(self.plan), target.controls, self.plan.seed)
        return make_membership(self.points("own"), sizes(self.plan), self.plan.seed, self.data.groups)

    def known(self, field: str) -> Ids:
        """Return the points of the classes that take part among those that the target names."""
        import numpy as np

        return np.intersect1d(self.given_points[field], self.points("own"))

    def borders(self) -> Borders:
        """Return what is kept apart on the candidates' side: attacker's points, filler, each candidate.

        With a given model also what else it was trained on.
        """
        import numpy as np

        found = self.sets
        parts = [found.attacker_points, found.filler]
        if self.plan.target is not None:
            parts.append(np.setdiff1d(self.known("members"), found.candidates))
        return borders(len(self.data), parts, found.candidates, self.data.groups)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know about the design."""
        design, size = self.sets, self.plan.split.train_size
        filler = len(design.filler) / size
        if self.plan.audit.mode != "II" or not len(design.null) or not FILLER_FACTOR <= filler < FILLER_OF_TEACHERS:
            return design.warnings
        return (
            *design.warnings,
            f"the filler of attack II holds {filler:.2g} training sets: in runs with two or three of them false calls "
            f"on null models were above the level, with seven they were not; give {FILLER_OF_TEACHERS * size} points "
            "of filler (fewer split.attacker_points leave more)",
        )

    @cached_property
    def models(self) -> dict[str, Fitted]:
        """All models by name, each behind its teacher."""
        own = self.own_models()
        if not self.plan.transferred:
            found = own
        elif self.plan.audit.mode == "II":
            found = [*own, *self.other_models(own)]
        elif self.plan.transfer.teacher is not None:
            found = own
        else:
            teachers = self.other_models([])
            named = {(model.group, model.index): model.name for model in teachers}
            students = (replace(model, teacher=named[model.group, model.index]) for model in own)
            found = [*teachers, *students]
        return {model.name: model for model in [*self.given_models(), *found]}

    def given_models(self) -> list[Fitted]:
        """Return the model that the plan is given, the first of the targets, or none."""
        if self.plan.target is None:
            return []
        return [Fitted(GIVEN, self.asked_side, "target", 0, self.known("members"), self.known("non_members"))]

    def own_models(self) -> list[Fitted]:
        """Return the models that are trained on the candidates' side, group by group."""
        design = self.sets
        unseen: dict[Group, Ids] = {
            "target": design.attacker_points[:TEST_POINTS],
            "null": design.attacker_points[:TEST_POINTS],
            "overfitted": design.attacker_points[:TEST_POINTS],
            "reference": design.filler[:TEST_POINTS],
        }
        rows: dict[Group, Ids] = {
            "target": design.target,
            "reference": design.reference,
            "null": design.null,
            "overfitted": design.overfitted,
        }
        return [
            Fitted(f"own-{SEEDED[group]}-{index}", "own", group, index, ids, unseen[group])
            for group, sets in rows.items()
            for index, ids in enumerate(sets)
        ]

    def other_models(self, teachers: list[Fitted]) -> list[Fitted]:
        """Return the models of the other side; students of ``teachers`` if there are any, of one group and index."""
        import numpy as np

        def tested(rest: Ids) -> Ids:
            """Return a sample of the rest: ids may stand class by class, so that the first are of few classes."""
            rng = numpy_generator(derive_seed(self.plan.seed, Purpose.MEMBERSHIP_TEST))
            return np.sort(rng.permutation(rest)[:TEST_POINTS])

        pool = self.points("other")
        if self.data.contents == self.other.contents:
            pool = pool[~np.isin(pool, self.with_groups(self.sets.candidates))]
        sets = other_side(pool, self.sets.split.models, self.plan.transfer.train_size, self.plan.seed)
        named = {(model.group, model.index): model.name for model in teachers}
        return [
            Fitted(
                f"other-{SEEDED[group]}-{index}", "other", group, index, ids,
                tested(np.setdiff1d(pool, ids)), named.get((group, index), ""),
            )
            for group, rows in sets.items()
            for index, ids in enumerate(rows)
        ]  # fmt: skip

    def with_groups(self, ids: Ids) -> Ids:
        """Return the points ``ids`` and, where the data have groups, all others of their groups."""
        import numpy as np

        groups = self.data.groups
        return ids if groups is None else np.flatnonzero(np.isin(groups, groups[ids])).astype(np.int64)

    @property
    def asked_side(self) -> Side:
        """The side whose models are asked: that of the candidates but in mode II."""
        return "other" if self.plan.audit.mode == "II" else "own"

    def models_of(self, group: Group) -> list[Fitted]:
        """Return the models of a group that are asked."""
        return [model for model in self.models.values() if model.side == self.asked_side and model.group == group]

    def recipe_of(self, model: Fitted) -> Recipe:
        """Return the recipe of a model: the other side may have one of its own."""
        other = self.plan.transfer.recipe
        return other if other is not None and model.side == "other" else self.plan.recipe

    def student(self, model: Fitted) -> bool:
        """Does the model start from a teacher?"""
        return bool(model.teacher) or (self.plan.audit.mode == "III" and self.plan.transfer.teacher is not None)

    @property
    def samples(self) -> Ids:
        """The attacker's points (R,) that selectors and learned attacks read: the first."""
        return self.sets.attacker_points[: self.plan.audit.reference_samples]

    @property
    def looked_at(self) -> Ids:
        """The attacker's points at which reference models are looked into: the first half of the samples."""
        return self.samples[: (len(self.samples) + 1) // 2]

    @property
    def proxy_points(self) -> Ids:
        """The attacker's points that proxies of heads learn: up to ``PROXY_POINTS`` of the other half."""
        return self.samples[len(self.looked_at) :][:PROXY_POINTS]

    @property
    def fit_points(self) -> Ids:
        """The attacker's points (P,) at which distances are set beside confidences: the last."""
        return self.sets.attacker_points[-self.plan.audit.reconstruction.points :]

    def own_labels(self, ids: Ids) -> Ids:
        """Return the classes of points of the candidates' side, counted as the models that are asked count theirs.

        −1 for classes that these do not have: students of mode II share with the candidates those of equal names.
        """
        import numpy as np

        classes = np.asarray(self.classes("own"))
        found = np.searchsorted(classes, self.data.labels[ids]).astype(np.int64)
        if self.asked_side == "own":
            return found
        theirs = [self.other.classes[index] for index in self.classes("other")]
        names = [self.data.classes[index] for index in self.classes("own")]
        shared = np.array([theirs.index(name) if name in theirs else -1 for name in names], dtype=np.int64)
        return shared[found]

    def true_star(self, ids: Ids) -> Ids | None:
        """Return y* (N,) where it is the true class, None where each model's own label counts.

        −1, where the true class is none of the model's, stands for its own label (``stars`` fills it in).
        """
        return self.own_labels(ids) if self.plan.audit.y_star == "true" else None

    def shards(self) -> int:
        """Return the number of shards into which the asked candidates are cut."""
        return -(-self.plan.audit.asked // self.plan.compute.chunk)

    def rows(self, shard: int) -> slice:
        """Return the places of one shard among the asked candidates."""
        chunk = self.plan.compute.chunk
        return slice(shard * chunk, min((shard + 1) * chunk, self.plan.audit.asked))

    def units(self, group: Group, most: int | None = None) -> list[list[Fitted]]:
        """Return the asked models of a group, the first ``most`` of them, in units of a fixed size.

        A given model is a unit by itself, so that what it is asked does not depend on the controls beside it.
        """
        models = self.models_of(group)[:most]
        alone = [[model] for model in models if model.name == GIVEN]
        models = models[len(alone) :]
        return [*alone, *(models[at : at + MODELS_PER_UNIT] for at in range(0, len(models), MODELS_PER_UNIT))]

    def build(self, side: Side, classes: int, seed: int) -> Any:
        """Return an untrained model of the plan's architecture for images of a side."""
        try:
            model = self.plan.model.architecture().build(self.data_of_side(side).shape, classes, seed)
        except BadInput as error:
            raise BadInput(under("model", str(error))) from None
        if self.plan.transfer.teacher_input != "imagenet":
            return model

        check_channels(self.plan, self.data_of_side(side).shape)
        return standardised(model, *TORCHVISION_INPUTS[self.plan.model.name])


def check_channels(plan: TmiaPlan, shape: tuple[int, ...]) -> None:
    """Refuse images that weights of torchvision cannot read; ``shape`` is empty where it is not known yet."""
    if plan.transfer.teacher_input == "imagenet" and shape and shape[0] != 3:
        raise BadInput(
            f"transfer.teacher_input is 'imagenet', whose weights read 3 channels, but images are "
            f"{'×'.join(map(str, shape))}; use images in colour or teacher_input: raw"
        )


def fit_sample(ids: Ids) -> Ids:
    """Return up to ``TEST_POINTS`` of ``ids``, the same in every plan: they are part of what a key stands for."""
    import numpy as np

    rng = numpy_generator(derive_seed(0, "given model", "accuracy"))
    return np.sort(rng.permutation(ids)[:TEST_POINTS])
