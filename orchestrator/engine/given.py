"""A model that somebody else has trained, and lists of points, given to a plan; who brings them in, and their keys.

The driver reads the files once and puts what they hold into the store (stage ``given``). Keys name the sha256 of a
file, which the plan keeps from then on (``target.sha256``): workers make the same keys from the plan alone and need not
see the files.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.credentials import without_mask
from audits.data.ids import Points
from audits.errors import BadInput, how_many
from audits.targets.forms import PART, file_and_part
from audits.targets.members import read_members
from audits.targets.rules import is_rule
from orchestrator.engine.given_files import STAGE, digest_of, target_of
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.keyed_jobs import KeyedJobs
from orchestrator.engine.plan.served import READ
from orchestrator.engine.store.faults import CorruptArtefact, Unsigned
from orchestrator.engine.store.payloads import unpack_arrays

if TYPE_CHECKING:
    from audits.arrays import Ids
    from orchestrator.engine.plan.target import Target

POINTS = "points"
"""The job that brings the lists of points in; others are named after the field of the model that they bring."""
IDS = "ids.safetensors"
READ_AS = {".csv": ", members by what a column says"}
"""How files of an ending are read, where stored lists may have been read otherwise."""
ASKED_AS = ("form", "columns", "template", "item", "answers", "encoding", "value_range")
"""The fields of ``target.served`` on which answers depend, beside those that say how they read."""


class GivenJobs(KeyedJobs):
    """Makes the jobs that bring the target of a plan in; for plans without a target there are none."""

    @property
    def target(self) -> Target | None:
        """The section ``target`` of the plan."""
        return target_of(self.plan)

    @property
    def the_target(self) -> Target:
        """The same of a plan that is known to have one."""
        assert self.target is not None, "the plan has no target"
        return self.target

    def given_jobs(self) -> list[Job]:
        """Return the jobs of all models and lists that the plan is given."""
        target = self.target
        return [] if target is None else [self.given_job(name) for name in (*target.named(target.MODELS), POINTS)]

    def given_job(self, name: str) -> Job:
        """Return the job that brings in the model of a field of ``target``, or (``POINTS``) its lists of points."""
        if name not in self._given:
            document = {"name": name, "data": self.data.fingerprint, **self.about_given(name)}
            code = self.given_code if name != POINTS and self.the_target.form(name, look=False) == "weights" else ()
            self._given[name] = self.job(STAGE, document, (), code, (), member=name)
        return self._given[name]

    @cached_property
    def _given(self) -> dict[str, Job]:
        return {}

    @property
    @abstractmethod
    def given_code(self) -> tuple[type, ...]:
        """The classes of the architectures that given models are of."""

    def about_given(self, name: str) -> dict[str, Any]:
        """Return what decides what a job brings in."""
        target = self.the_target
        lists = {field: self.list_description(text) for field, text in target.named(target.POINTS).items()}
        if name == POINTS:
            return lists
        file = target.named((name,))[name]
        read = target.served.model_dump(mode="json") if target.served is not None and name == "weights" else {}
        reading = {field: read[field] for field in READ if field in read}
        match target.form(name, look=False):
            case "address":
                asked = {field: read[field] for field in ASKED_AS}
                return {**lists, **reading, **asked, "served": read["identity"] or without_mask(file)}
            case "weights":  # or TorchScript in .pt, which only those can tell who have the file
                model = self.plan.model.model_dump(mode="json")
                return {**lists, **reading, "weights": self.description(file), "model": model}
            case form:
                return {**lists, **reading, "form": form, "weights": self.description(file)}

    def description(self, name: str) -> str:
        """Return a rule as it is, or the sha256 of a file, with the part of it that is meant."""
        if is_rule(name):
            return name
        target, part = self.the_target, file_and_part(name)[1]
        digest = digest_of(name, target.sha256.get(name), target.is_record(name))
        return digest if part is None else f"{digest}{PART}{part}"

    def list_description(self, name: str) -> str:
        """Return a rule as it is, or of a file its sha256 and all else that decides which points it names."""
        told = self.description(name)
        if is_rule(name):
            return told
        told += READ_AS.get(Path(name).suffix, "")
        return told if self.data.names is None else f"{told} among {self._names_digest}"

    @cached_property
    def _names_digest(self) -> str:
        return hashlib.sha256(json.dumps(list(self.data.names or ())).encode()).hexdigest()

    def asked_points(self) -> Ids | None:
        """Return the ids (n,), sorted, of the points about which any audit by this plan asks the target.

        None where the kind does not say: recorded answers then show what they lack when they are asked for it.
        """
        return None

    @property
    def target_classes(self) -> int:
        """How many classes the given models tell apart: all of the data, unless the kind says otherwise."""
        return len(self.data.classes)

    def given_model(self, field: str = "weights") -> Reference:
        """Return where a given model stands in the store."""
        return Reference(STAGE, self.given_job(field).key)

    @cached_property
    def given_points(self) -> dict[str, Ids]:
        """The given lists of points by field, ids (n,) sorted: from the store, and before they are there from files.

        From their files as well where what the store has cannot be believed, if they are here (``--rebuild``).
        """
        key = self.given_job(POINTS).key
        if self.store is None or not self.store.has(STAGE, key):
            return self.read_points()
        try:
            return dict(unpack_arrays(self.store.get(STAGE, key).read(IDS)))
        except (CorruptArtefact, Unsigned) as error:
            with suppress(BadInput):
                return self.read_points()
            raise error

    def read_points(self) -> dict[str, Ids]:
        """Return the given lists of points as their files say them (``points_of``)."""
        return points_of(self.the_target, Points.of(self.data, self.plan.data.root))


def points_of(target: Target, points: Points) -> dict[str, Ids]:
    """Return the given lists of points by field; raises BadInput for points that are in two lists.

    Without ``non_members`` these are all others among the ``points`` of the data set.
    """
    import numpy as np

    found = {
        field: read_members(text, points, f"target.{field}") for field, text in target.named(target.POINTS).items()
    }
    members = found["members"]
    others = found.setdefault("non_members", np.setdiff1d(np.arange(points.count, dtype=np.int64), members))
    if len(both := np.intersect1d(members, others)):
        raise BadInput(
            f"target.non_members has {how_many(len(both), 'point')} in target.members as well, first {both[0]}; a "
            "point is one or the other"
        )
    return found
