"""From a plan to jobs: what must exist, under which key, and what each piece of work needs first.

A job's document names everything that decides its result; its key is the hash of the document. Jobs are small (index
sets are named by digest): a worker derives the same partition from the plan and looks its own part up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from orchestrator.keys import artefact_key, digest

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from audits.data.partition import Member, Partition
    from orchestrator.plan import Plan
    from orchestrator.plan_sections import UnlearningMethod


@dataclass(frozen=True)
class Job:
    """One piece of work of a run.

    ``stage`` names the body (``orchestrator.stages``), ``key`` its artefact, ``needs`` the keys it reads, ``plan`` the
    hash of the plan that it belongs to. ``member`` is a model of the partition (train, unlearn, utility), ``label`` an
    unlearning method, ``shadow_set`` and ``shard`` the candidates (search, score).
    """

    stage: str
    key: str
    needs: tuple[str, ...]
    document: Mapping[str, Any]
    plan: str
    member: str = ""
    label: str = ""
    shadow_set: int = -1
    shard: int = -1


@dataclass(frozen=True)
class Schedule:
    """All jobs of a plan, by kind, each list in a fixed order that follows the design."""

    train_jobs: tuple[Job, ...]
    unlearn_jobs: tuple[Job, ...]
    utility_units: tuple[Job, ...]
    search_units: tuple[Job, ...]
    score_units: tuple[Job, ...]

    @property
    def models(self) -> tuple[Job, ...]:
        """Training and unlearning jobs: one queue."""
        return self.train_jobs + self.unlearn_jobs

    @property
    def units(self) -> tuple[Job, ...]:
        """Attack work: utilities, searches and scores."""
        return self.utility_units + self.search_units + self.score_units

    def keys(self) -> dict[str, list[str]]:
        """Return stage → keys of every artefact that the plan refers to."""
        found: dict[str, list[str]] = {}
        for job in (*self.models, *self.units):
            found.setdefault(job.stage, []).append(job.key)
        return found


@dataclass(frozen=True)
class Reference:
    """A model in the store: its stage and key."""

    stage: str
    key: str


class Scheduler:
    """Works out the documents and keys of one plan on one data set; ``device`` is "cpu" or "cuda"."""

    def __init__(self, plan: Plan, data: Dataset, device: str) -> None:
        self.plan = plan
        self.data = data
        self.device = device

    @cached_property
    def partition(self) -> Partition:
        """The design that the plan's split and seed give on this data set."""
        from audits.data.partition import make_partition

        return make_partition(len(self.data), self.plan.split.design(), self.plan.seed)

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """The models of the partition by name."""
        return {member.name: member for member in self.partition.members}

    @cached_property
    def by_label(self) -> dict[str, UnlearningMethod]:
        """The plan's unlearning methods by label."""
        return {entry.label: entry for entry in self.plan.unlearning}

    @cached_property
    def plan_hash(self) -> str:
        """The hash of the plan."""
        return self.plan.plan_hash

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The plan as plain values."""
        return self.plan.resolved()

    @cached_property
    def architecture(self) -> type:
        """The class of the plan's architecture."""
        from audits.models import MODELS

        return MODELS[self.plan.model.name]

    @cached_property
    def platform(self) -> dict[str, Any]:
        """What decides the last bits of a number beside the plan: library, device, threads."""
        from importlib.metadata import version

        return {
            "torch": version("torch"),
            "device": self.device.partition(":")[0],
            "threads": self.plan.compute.threads,
        }

    def schedule(self) -> Schedule:
        """Return every job of the plan."""
        train = [self.train_job(member) for member in self.partition.members]
        unlearn = [
            self.unlearn_job(member, entry)
            for entry in self.plan.unlearning
            if entry.method != "identity"
            for member in self.partition.members
        ]
        utility = [self.utility_job(member, entry) for entry in self.plan.unlearning for member in self.targets]
        offline = [
            self.offline_job(shadow_set, shard)
            for shadow_set in range(self.partition.split.shadow_sets)
            for shard in range(self.shards(shadow_set))
            if self.offline_asked
        ]
        online = [
            self.online_job(shadow_set, entry, shard)
            for shadow_set in range(self.partition.split.shadow_sets)
            for entry in self.plan.unlearning
            for shard in range(self.shards(shadow_set))
        ]
        score = [
            self.score_job(shadow_set, entry)
            for shadow_set in range(self.partition.split.shadow_sets)
            for entry in self.plan.unlearning
        ]
        return Schedule(tuple(train), tuple(unlearn), tuple(utility), tuple(offline + online), tuple(score))

    @property
    def targets(self) -> tuple[Member, ...]:
        """The target models of the design."""
        return tuple(member for member in self.partition.members if member.role == "target")

    @property
    def offline_asked(self) -> bool:
        """Does any attack of the plan read offline walks?"""
        return "apollo_offline" in self.plan.audit.attacks

    def shards(self, shadow_set: int) -> int:
        """Return the number of shards into which the candidates of a shadow set are cut."""
        return -(-len(self.partition.candidates[shadow_set].ids) // self.plan.compute.chunk)

    def rows(self, shadow_set: int, shard: int) -> slice:
        """Return the candidates of one shard."""
        chunk = self.plan.compute.chunk
        return slice(shard * chunk, min((shard + 1) * chunk, len(self.partition.candidates[shadow_set].ids)))

    def members(self, role: str, shadow_set: int, group: int) -> tuple[Member, ...]:
        """Return the members of one group that the search uses: all, or the first of each half (``search.shadows``)."""
        found = self.partition.select(role, shadow_set, group)  # type: ignore[arg-type]  # "shadow" or "offline"
        wanted = self.plan.audit.search.shadows
        return found[: wanted // 2] if wanted and role == "shadow" else found

    def train_job(self, member: Member) -> Job:
        """Return the job that trains ``member``."""
        return self.job("train", self.train_document(member), (), member=member.name)

    def train_document(self, member: Member) -> dict[str, Any]:
        """Return everything that decides a trained model."""
        return {
            "data": self.data.fingerprint,
            "points": digest(member.train),
            "count": len(member.train),
            "model": self.resolved["model"],
            "recipe": self.resolved["recipe"],
            "seed": self.plan.seed,
            "member": member.name,
        }

    def unlearn_job(self, member: Member, entry: UnlearningMethod) -> Job:
        """Return the job that makes ``member`` forget by the method ``entry``."""
        from audits.unlearning import UNLEARNERS

        train = self.trained(member)
        document = {
            "train": train.key,
            "forget": digest(member.forget),
            "count": len(member.forget),
            "method": entry.method,
            "settings": entry.settings,
            "label": entry.label,
            "seed": self.plan.seed,
            "model": self.resolved["model"],
            "recipe": self.resolved["recipe"],
            "member": member.name,
        }
        method = (UNLEARNERS[entry.method],)
        return self.job("unlearn", document, (train.key,), method, member=member.name, label=entry.label)

    def trained(self, member: Member) -> Reference:
        """Return where the trained model of ``member`` stands."""
        return self._references.setdefault(("", member.name), Reference("train", self.train_job(member).key))

    def unlearned(self, member: Member, entry: UnlearningMethod) -> Reference:
        """Return where the unlearned model stands; ``identity`` is the trained model itself."""
        if entry.method == "identity":
            return self.trained(member)
        name = (entry.label, member.name)
        if name not in self._references:
            self._references[name] = Reference("unlearn", self.unlearn_job(member, entry).key)
        return self._references[name]

    @cached_property
    def _references(self) -> dict[tuple[str, str], Reference]:
        return {}

    def utility_job(self, member: Member, entry: UnlearningMethod) -> Job:
        """Return the job that measures an unlearned target: accuracies, distance from the original, seconds."""
        before, after = self.trained(member), self.unlearned(member, entry)
        document = {
            "trained": before.key,
            "unlearned": after.key,
            "method": entry.method,
            "retain": digest(member.retain),
            "forget": digest(member.forget),
            "test": digest(self.partition.test),
        }
        return self.job("utility", document, (before.key, after.key), member=member.name, label=entry.label)

    def online_job(self, shadow_set: int, entry: UnlearningMethod, shard: int) -> Job:
        """Return the job that searches with one method's shadows and asks its targets, for one shard."""
        groups = [self.members("shadow", shadow_set, group) for group in (1, 2)]
        originals = [[self.trained(member).key for member in group] for group in groups]
        unlearned = [[self.unlearned(member, entry).key for member in group] for group in groups]
        targets = [self.unlearned(member, entry).key for member in self.targets_of(shadow_set)]
        document = {
            "kind": "online",
            "method": entry.method,
            "original": originals,
            "unlearned": unlearned,
            "targets": targets,
            **self.asking(shadow_set, shard),
        }
        needs = (*chain(*originals), *chain(*unlearned), *targets)
        return self.job("search", document, needs, label=entry.label, shadow_set=shadow_set, shard=shard)

    def offline_job(self, shadow_set: int, shard: int) -> Job:
        """Return the job that searches once with the offline shadows and asks every method's models, for one shard."""
        groups = [self.members("offline", shadow_set, group) for group in (1, 2)]
        originals = [[self.trained(member).key for member in group] for group in groups]
        unlearned = {
            entry.label: [[self.unlearned(member, entry).key for member in group] for group in groups]
            for entry in self.plan.unlearning
        }
        targets = {
            entry.label: [self.unlearned(member, entry).key for member in self.targets_of(shadow_set)]
            for entry in self.plan.unlearning
        }
        document = {
            "kind": "offline",
            "original": originals,
            "unlearned": unlearned,
            "targets": targets,
            "methods": {entry.label: entry.method for entry in self.plan.unlearning},
            **self.asking(shadow_set, shard),
        }
        needs = (*chain(*originals), *chain(*chain(*unlearned.values())), *chain(*targets.values()))
        return self.job("search", document, needs, shadow_set=shadow_set, shard=shard)

    def asking(self, shadow_set: int, shard: int) -> dict[str, Any]:
        """Return what decides the questions of a shard: candidates, settings of the search, seed."""
        asked, rows = self.partition.candidates[shadow_set], self.rows(shadow_set, shard)
        search = self.resolved["audit"]["search"]
        return {
            "data": self.data.fingerprint,
            "candidates": digest(asked.ids[rows]),
            "owners": digest(asked.target[rows]),
            "count": rows.stop - rows.start,
            "search": {name: value for name, value in search.items() if name != "shadows"},
            "chunk": self.plan.compute.chunk,
            "seed": self.plan.seed,
        }

    def score_job(self, shadow_set: int, entry: UnlearningMethod) -> Job:
        """Return the job that judges all candidates of a shadow set for one method."""
        from audits.attacks import ATTACKS

        shards = range(self.shards(shadow_set))
        online = [self.online_job(shadow_set, entry, shard).key for shard in shards]
        offline = [self.offline_job(shadow_set, shard).key for shard in shards] if self.offline_asked else []
        document = {
            "online": online,
            "offline": offline,
            "label": entry.label,
            "attacks": list(self.plan.audit.attacks),
            "fpr": list(self.plan.audit.fpr),
            "candidates": digest(self.partition.candidates[shadow_set].ids),
            "truth": digest(self.partition.candidates[shadow_set].forgotten),
        }
        attacks = [ATTACKS[name] for name in self.plan.audit.attacks]
        return self.job("score", document, (*online, *offline), attacks, label=entry.label, shadow_set=shadow_set)

    def targets_of(self, shadow_set: int) -> tuple[Member, ...]:
        """Return the targets that a shadow set serves."""
        return self.partition.select("target", shadow_set)

    def job(
        self, stage: str, document: dict[str, Any], needs: Iterable[str], components: Iterable[type] = (), **place: Any
    ) -> Job:
        """Return the job of ``stage`` for ``document``, completed by platform and code version.

        ``components``: classes of the method or attacks that take part; the plan's architecture always does.
        """
        from orchestrator.codeversion import code_version

        modules = tuple(dict.fromkeys(part.__module__ for part in (self.architecture, *components)))
        own = tuple(name for name in modules if name.startswith("audits."))
        whole = {**document, "code": code_version(stage, own), "platform": self.platform}
        return Job(stage, artefact_key(stage, whole), tuple(dict.fromkeys(needs)), whole, self.plan_hash, **place)

    def job_like(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        if job.stage in ("train", "unlearn", "utility"):
            member = self.by_name[job.member]
            if job.stage == "train":
                return self.train_job(member)
            make = self.unlearn_job if job.stage == "unlearn" else self.utility_job
            return make(member, self.by_label[job.label])
        if job.stage == "score":
            return self.score_job(job.shadow_set, self.by_label[job.label])
        if not job.label:
            return self.offline_job(job.shadow_set, job.shard)
        return self.online_job(job.shadow_set, self.by_label[job.label], job.shard)


def open_scheduler(plan: Plan) -> Scheduler:
    """Return the scheduler of a plan on its data set."""
    return Scheduler(plan, data_of(plan.data.name, plan.data.root), device_of(plan))


@cache
def data_of(name: str, root: str | None) -> Dataset:
    """Return the data set, loaded once per process."""
    from audits.data.catalogue import load

    return load(name, root)


def device_of(plan: Plan) -> str:
    """Return "cpu" or "cuda" (with its index when the plan names one): what ``compute.device`` comes to here."""
    if plan.compute.device != "auto":
        return plan.compute.device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def schedule(plan: Plan) -> Schedule:
    """Return every job of ``plan``."""
    return open_scheduler(plan).schedule()


def missing(jobs: Iterable[Job], present: Mapping[str, set[str]]) -> Iterator[Job]:
    """Yield the jobs whose artefact is not in the store (``present``: stage → keys), each key once."""
    seen: set[str] = set()
    for job in jobs:
        if job.key not in present.get(job.stage, set()) and job.key not in seen:
            seen.add(job.key)
            yield job
