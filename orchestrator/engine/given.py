"""What a plan is given: a model that somebody else has trained, and lists of points; who brings it in, and its keys.

The driver reads the files once and puts what they hold into the store (stage ``given``). Keys name the sha256 of a
file, which the plan keeps from then on (``target.sha256``): workers make the same keys from the plan alone and need not
see the files.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from audits.credentials import without_mask
from audits.errors import BadInput
from audits.targets.members import read_members
from audits.targets.rules import is_rule
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.keyed_jobs import KeyedJobs
from orchestrator.engine.plan.served import READ
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.places import ANSWERS
from orchestrator.engine.store.store import default_store_uri

if TYPE_CHECKING:
    from audits.arrays import Ids
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.plan.served import Served
    from orchestrator.engine.plan.target import Target

STAGE = "given"
POINTS = "points"
"""The job that brings the lists of points in; others are named after the field of the model that they bring."""
IDS = "ids.safetensors"
READ_AT_ONCE = 2**22
ASKED_AS = ("form", "columns", "template", "item", "answers", "encoding", "value_range")
"""The fields of ``target.served`` on which answers depend, beside those that say how they read."""

P = TypeVar("P", bound="BasePlan")


def target_of(plan: Any) -> Target | None:
    """Return the section ``target`` of a plan, if its kind knows one and it is there."""
    found: Target | None = getattr(plan, "target", None)
    return found if hasattr(found, "sha256") else None


def with_digests(plan: P) -> P:
    """Return the plan with the sha256 of every file of its target, and the folder of a served one's record.

    Plans without a target are returned as they are.

    Raises BadInput for a file that cannot be read, and for one that is not the one that the plan was written for. A
    file that is gone will do where the plan knows its sha256: the store may have what it held.
    """
    target = target_of(plan)
    if target is None:
        return plan
    found = {name: digest_of(name, target.sha256.get(name)) for name in target.files}
    changes: dict[str, Any] = {} if found == target.sha256 else {"target.sha256": found}
    if target.served is not None and target.form() == "address":
        record = record_of(plan, target.served)
        changes |= {} if record == target.served.record else {"target.served.record": record}
    return plan.changed(changes) if changes else plan


def record_of(plan: BasePlan, served: Served) -> str:
    """Return the folder in which a served model's answers are kept; raises BadInput where the plan must name it."""
    if served.record is not None:
        return str(Path(served.record).expanduser().absolute())
    store = plan.compute.store or default_store_uri()
    parts = urlsplit(store) if "://" in store else None
    if plan.compute.address or (parts and parts.scheme != "file"):
        where = f"at {plan.compute.address}" if plan.compute.address else f"beside the store {store}"
        raise BadInput(
            f"target.served.record is missing: answers are recorded in a folder, and none is known {where}; name one "
            "that all workers share"
        )
    return os.path.join(os.path.abspath(os.path.expanduser(unquote(parts.path) if parts else store)), ANSWERS)


def digest_of(name: str, known: str | None = None) -> str:
    """Return the sha256 (hex) of a file; ``known``: what it must be, and what it is taken for when it is gone."""
    path = Path(name).expanduser()
    try:
        if path.is_dir():
            return folder_sha256(path) if known is None else matching(name, folder_sha256(path), known)
        about = path.stat()
    except OSError as error:
        if known is not None:
            return known
        raise BadInput(f"target: {name} cannot be read: {error.strerror or error}") from None
    return matching(name, file_sha256(path, about.st_mtime_ns, about.st_size), known)


def matching(name: str, found: str, known: str | None) -> str:
    """Return the sha256 that was found; raises BadInput where the plan was written for another one."""
    if known is not None and found != known:
        raise BadInput(
            f"target: {name} is not the file that the plan was written for (its sha256 begins with {found[:12]}, that "
            f"of the plan, target.sha256, with {known[:12]}); give that file, or remove target.sha256 to audit this one"
        )
    return found


def folder_sha256(path: Path) -> str:
    """Return the sha256 of the names and contents of all Parquet files in the folder of a record."""
    found = hashlib.sha256()
    for file in sorted(path.rglob("*.parquet")):
        about = file.stat()
        found.update(f"{file.relative_to(path)} {file_sha256(file, about.st_mtime_ns, about.st_size)}\n".encode())
    return found.hexdigest()


@cache
def file_sha256(path: Path, changed: int, size: int) -> str:
    """Return the sha256 of a file, read once as long as its time and size stay."""
    found = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(READ_AT_ONCE):
                found.update(part)
    except OSError as error:
        raise BadInput(f"target: {path} cannot be read: {error.strerror or error}") from None
    return found.hexdigest()


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
    def given_code(self) -> tuple[type, ...]:
        """The classes of the architectures that given models are of."""
        raise NotImplementedError

    def about_given(self, name: str) -> dict[str, Any]:
        """Return what decides what a job brings in."""
        target = self.the_target
        lists = {field: self.told(text) for field, text in target.named(target.POINTS).items()}
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
                return {**lists, **reading, "weights": self.told(file), "model": model}
            case form:
                return {**lists, **reading, "form": form, "weights": self.told(file)}

    def told(self, name: str) -> str:
        """Return a rule as it is, or the sha256 of a file."""
        return name if is_rule(name) else digest_of(name, self.the_target.sha256.get(name))

    def given_model(self, field: str = "weights") -> Reference:
        """Return where a given model stands in the store."""
        return Reference(STAGE, self.given_job(field).key)

    @cached_property
    def given_points(self) -> dict[str, Ids]:
        """The given lists of points by field, ids (n,) sorted: from the store, and before they are there from files."""
        key = self.given_job(POINTS).key
        if self.store is not None and self.store.has(STAGE, key):
            return dict(unpack_arrays(self.store.get(STAGE, key).read(IDS)))
        return self.read_points()

    def read_points(self) -> dict[str, Ids]:
        """Return the given lists of points as their files say them (``points_of``)."""
        return points_of(self.the_target, len(self.data))


def points_of(target: Target, count: int) -> dict[str, Ids]:
    """Return the given lists of points by field; raises BadInput for points that are in two lists.

    ``count``: points of the data set. Without ``non_members`` these are all others.
    """
    import numpy as np

    found = {field: read_members(text, count, f"target.{field}") for field, text in target.named(target.POINTS).items()}
    members = found["members"]
    others = found.setdefault("non_members", np.setdiff1d(np.arange(count, dtype=np.int64), members))
    if len(both := np.intersect1d(members, others)):
        raise BadInput(
            f"target.non_members has {len(both)} points that are target.members as well, first {both[0]}; a point "
            "is one or the other"
        )
    return found
