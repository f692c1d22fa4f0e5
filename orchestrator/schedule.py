"""From a plan to jobs: what must exist, under which key, and what each piece of work needs first.

A job's document names everything that decides its result; its key is the hash of the document. Jobs are small (index
sets are named by digest): a worker derives the same partition from the plan and looks its own part up.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from orchestrator.jobs import Job, Reference, Schedule
from orchestrator.keys import artefact_key, digest

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from audits.data.partition import Member, Partition, Split
    from audits.evidence import Kind
    from audits.training.recipe import Recipe
    from orchestrator.plan import Plan
    from orchestrator.plan_sections import Model, UnlearningMethod
    from orchestrator.store import Store


class Scheduler:
    """Works out the documents and keys of one plan on one data set; ``device`` is "cpu" or "cuda".

    ``store`` is read by plans that audit memorised points: their partition needs the ranking that ``ranking_jobs``
    make.
    """

    def __init__(self, plan: Plan, data: Dataset, device: str, store: Store | None = None) -> None:
        self.plan = plan
        self.data = data
        self.device = device
        self.store = store

    @cached_property
    def design(self) -> Split:
        """The sizes of the plan's split, classes by index."""
        return self.plan.split.design(self.data.classes)

    @cached_property
    def partition(self) -> Partition:
        """The design that the plan's split and seed give on this data set. Raises BadInput before points are ranked."""
        from audits.data.partition import make_partition

        ranking = self.ranking() if self.ranked else None
        return make_partition(len(self.data), self.design, self.plan.seed, labels=self.data.labels, ranking=ranking)

    @property
    def ranked(self) -> bool:
        """Does the partition need a ranking of the points?"""
        return self.plan.split.points == "memorised"

    @cached_property
    def ranking_members(self) -> dict[str, Member]:
        """The models of the ranking population by name; none when nothing is ranked."""
        from audits.data.partition import ranking_members

        members = ranking_members(len(self.data), self.design, self.plan.seed) if self.ranked else ()
        return {member.name: member for member in members}

    def ranking_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that rank the points: what must be done before there is a partition."""
        if not self.ranked:
            return ()
        return (*(self.train_job(member) for member in self.ranking_members.values()), self.rank_job())

    def ranked_points(self) -> Any:
        """Return the ids (n,) of the points that are ranked."""
        from audits.data.partition import ranked_pool

        return ranked_pool(len(self.data), self.design, self.plan.seed)

    def rank_job(self) -> Job:
        """Return the job that measures how much each point of the ranked pool is memorised."""
        models = [self.trained(member).key for member in self.ranking_members.values()]
        document = {"data": self.data.fingerprint, "points": digest(self.ranked_points()), "models": models}
        return self.job("rank", document, models, self.architecture(next(iter(self.ranking_members.values()))))

    def ranking(self) -> Any:
        """Return the memorisation (N,) of all points of the data set, NaN where not ranked; None before it is known."""
        import numpy as np

        from orchestrator.stages import RANKING
        from orchestrator.store import unpack_arrays

        key = self.rank_job().key
        if self.store is None or not self.store.has("rank", key):
            return None
        found = np.full(len(self.data), np.nan)
        found[self.ranked_points()] = unpack_arrays(self.store.get("rank", key).read(RANKING))["memorisation"]
        return found

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """The models of the partition by name."""
        return {member.name: member for member in self.partition.members}

    def member(self, name: str) -> Member:
        """Return a model of the ranking population or of the partition."""
        return self.ranking_members[name] if name in self.ranking_members else self.by_name[name]

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
    def kinds(self) -> tuple[str, ...]:
        """The kinds of evidence that the plan's attacks read, each behind those that it comes after."""
        from audits.attacks import ATTACKS
        from audits.evidence import in_order

        read = [kind for name in self.plan.audit.attacks for kind in ATTACKS[name].reads]
        return in_order([*read, *(["apollo"] if self.plan.audit.radii else [])])

    @cached_property
    def platform(self) -> dict[str, Any]:
        """What decides the last bits of a number beside the plan: library, device, threads."""
        from importlib.metadata import version

        return {
            "torch": version("torch"),
            "device": self.device.partition(":")[0],
            "threads": self.plan.compute.threads,
            **({"opacus": version("opacus")} if self.private else {}),
        }

    @property
    def private(self) -> bool:
        """Does any model of the plan train with DP-SGD?"""
        return self.plan.recipe.private or bool(self.plan.shadow_recipe and self.plan.shadow_recipe.private)

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
        from audits.models import MODELS

        names = (self.plan.model.name, (self.plan.shadow_model or self.plan.model).name)
        return tuple(MODELS[name] for name in dict.fromkeys(names))

    def architecture(self, member: Member) -> tuple[type]:
        """Return the class of the architecture of ``member``."""
        from audits.models import MODELS

        return (MODELS[self.model_of(member).name],)

    def schedule(self) -> Schedule:
        """Return every job of the plan."""
        from audits.evidence import KINDS

        sets, methods = range(self.partition.split.shadow_sets), self.plan.unlearning
        places = [(shadow_set, shard) for shadow_set in sets for shard in range(self.shards(shadow_set))]
        members = self.partition.members
        changed = [entry for entry in methods if entry.method != "identity"]
        return Schedule(
            train_jobs=tuple(self.train_job(member) for member in members),
            unlearn_jobs=tuple(self.unlearn_job(member, entry) for entry in changed for member in members),
            utility_units=tuple(self.utility_job(member, entry) for entry in methods for member in self.targets),
            trace_units=tuple(
                self.trace_job(*place, kind) for place in places for kind in self.kinds if KINDS[kind].traced
            ),
            search_units=tuple(
                self.search_job(shadow_set, entry, kind, shard)
                for shadow_set, shard in places
                for entry in methods
                for kind in self.kinds
            ),
            score_units=tuple(self.score_job(shadow_set, entry) for shadow_set in sets for entry in methods),
            radius_units=tuple(
                self.radius_job(shadow_set, entry)
                for shadow_set in sets
                for entry in methods
                if self.plan.audit.radii and entry.method not in ("identity", "retrain")
            ),
        )

    @property
    def targets(self) -> tuple[Member, ...]:
        """The target models of the design."""
        return tuple(member for member in self.partition.members if member.role == "target")

    def targets_of(self, shadow_set: int) -> tuple[Member, ...]:
        """Return the targets that a shadow set serves."""
        return self.partition.select("target", shadow_set)

    def shards(self, shadow_set: int) -> int:
        """Return the number of shards into which the candidates of a shadow set are cut."""
        return -(-len(self.partition.candidates[shadow_set].ids) // self.plan.compute.chunk)

    def rows(self, shadow_set: int, shard: int) -> slice:
        """Return the candidates of one shard."""
        chunk = self.plan.compute.chunk
        return slice(shard * chunk, min((shard + 1) * chunk, len(self.partition.candidates[shadow_set].ids)))

    def groups(self, role: str, shadow_set: int) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
        """Return the shadows of both halves that searches use: all, or the first of each (``search.shadows``).

        ``role``: "online" or "offline".
        """
        stored: Any = "shadow" if role == "online" else role
        wanted = self.plan.audit.search.shadows if role == "online" else None
        first, second = (self.partition.select(stored, shadow_set, group) for group in (1, 2))
        return (first[: wanted // 2], second[: wanted // 2]) if wanted else (first, second)

    def population(self) -> Any:
        """Return the ids of points that no model trained on and no candidate is: the first of the test points."""
        return self.partition.test[: self.plan.audit.population]

    @property
    def budget(self) -> int:
        """Label queries per candidate of kinds that choose as they go: by default as many as Apollo asks."""
        return self.plan.audit.query_budget

    def train_job(self, member: Member) -> Job:
        """Return the job that trains ``member``."""
        document = {
            "data": self.data.fingerprint,
            "points": digest(member.train),
            "count": len(member.train),
            **self.fitting(member),
            "seed": self.plan.seed,
            "member": member.name,
        }
        return self.job("train", document, (), self.architecture(member), member=member.name)

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
            **self.fitting(member),
            "member": member.name,
        }
        code = (*self.architecture(member), UNLEARNERS[entry.method])
        return self.job("unlearn", document, (train.key,), code, member=member.name, label=entry.label)

    def trained(self, member: Member) -> Reference:
        """Return where the trained model of ``member`` stands."""
        name = ("", member.name)
        if name not in self._references:
            self._references[name] = Reference("train", self.train_job(member).key)
        return self._references[name]

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
        keys = (before.key, after.key)
        return self.job("utility", document, keys, self.architecture(member), member=member.name, label=entry.label)

    def trace_job(self, shadow_set: int, shard: int, kind: str) -> Job:
        """Return the job that searches with original shadows only, for all unlearning methods, for one shard."""
        from audits.evidence import KINDS

        found = KINDS[kind]
        originals = self.original_keys(shadow_set, found)
        document = {"kind": kind, "original": originals, **self.asking(shadow_set, shard, found)}
        needs = tuple(chain(*chain(*originals.values())))
        code = (*self.architectures(), found)
        return self.job("trace", document, needs, code, kind=kind, shadow_set=shadow_set, shard=shard)

    def search_job(self, shadow_set: int, entry: UnlearningMethod, kind: str, shard: int) -> Job:
        """Return the job that gathers one kind of evidence about one method, for one shard."""
        from audits.evidence import KINDS

        found = KINDS[kind]
        originals = self.original_keys(shadow_set, found)
        unlearned = {
            role: [[self.unlearned(member, entry).key for member in group] for group in self.groups(role, shadow_set)]
            for role in found.reads
        }
        targets = [self.unlearned(member, entry).key for member in self.targets_of(shadow_set)]
        earlier = {name: self.search_job(shadow_set, entry, name, shard).key for name in found.after}
        traced = [self.trace_job(shadow_set, shard, kind).key] if found.traced else []
        document = {
            "kind": kind,
            "method": entry.method,
            "original": originals,
            "unlearned": unlearned,
            "targets": targets,
            "after": earlier,
            "trace": traced,
            **self.asking(shadow_set, shard, found),
        }
        models = chain(*chain(*originals.values()), *chain(*unlearned.values()), targets)
        place = {"label": entry.label, "kind": kind, "shadow_set": shadow_set, "shard": shard}
        return self.job(
            "search", document, (*models, *earlier.values(), *traced), (*self.architectures(), found), **place
        )

    def original_keys(self, shadow_set: int, kind: type[Kind]) -> dict[str, list[list[str]]]:
        """Return the keys of the original shadows that ``kind`` reads: role → group → keys."""
        return {
            role: [[self.trained(member).key for member in group] for group in self.groups(role, shadow_set)]
            for role in kind.reads
        }

    def asking(self, shadow_set: int, shard: int, kind: type[Kind]) -> dict[str, Any]:
        """Return what decides the questions of a shard: candidates, the settings that ``kind`` reads, seed."""
        asked, rows = self.partition.candidates[shadow_set], self.rows(shadow_set, shard)
        search = self.resolved["audit"]["search"]
        settings = {
            "search": {name: value for name, value in search.items() if name != "shadows"},
            "budget": self.budget,
            "population": digest(self.population()),
        }
        return {
            "data": self.data.fingerprint,
            "candidates": digest(asked.ids[rows]),
            "owners": digest(asked.target[rows]),
            "count": rows.stop - rows.start,
            **{name: settings[name] for name in kind.settings},
            "chunk": self.plan.compute.chunk,
            "seed": self.plan.seed,
        }

    def score_job(self, shadow_set: int, entry: UnlearningMethod) -> Job:
        """Return the job that judges all candidates of a shadow set for one method."""
        from audits.attacks import ATTACKS

        shards = range(self.shards(shadow_set))
        evidence = {
            kind: [self.search_job(shadow_set, entry, kind, shard).key for shard in shards] for kind in self.kinds
        }
        document = {
            "evidence": evidence,
            "label": entry.label,
            "attacks": list(self.plan.audit.attacks),
            "fpr": list(self.plan.audit.fpr),
            "candidates": digest(self.partition.candidates[shadow_set].ids),
            "truth": digest(self.partition.candidates[shadow_set].group),
        }
        code = [ATTACKS[name] for name in self.plan.audit.attacks]
        needs = chain(*evidence.values())
        return self.job("score", document, needs, code, label=entry.label, shadow_set=shadow_set)

    @property
    def retraining(self) -> UnlearningMethod:
        """The plan's control ``retrain``, the first of that name."""
        return next(entry for entry in self.plan.unlearning if entry.method == "retrain")

    def radius_job(self, shadow_set: int, entry: UnlearningMethod) -> Job:
        """Return the job that sets estimated radii beside those at which the labels of a set's targets flip."""
        targets = self.targets_of(shadow_set)
        models = [
            [self.trained(member).key, *(self.unlearned(member, each).key for each in (entry, self.retraining))]
            for member in targets
        ]
        shards = range(self.shards(shadow_set))
        evidence = [self.search_job(shadow_set, entry, "apollo", shard).key for shard in shards]
        document = {
            "model": self.fitting(targets[0])["model"],
            "models": models,
            "evidence": evidence,
            "candidates": digest(self.partition.candidates[shadow_set].ids),
            "truth": digest(self.partition.candidates[shadow_set].group),
            "seed": self.plan.seed,
        }
        needs, code = (*chain(*models), *evidence), self.architecture(targets[0])
        return self.job("radii", document, needs, code, label=entry.label, shadow_set=shadow_set)

    def job(
        self, stage: str, document: dict[str, Any], needs: Iterable[str], code: Iterable[type], **place: Any
    ) -> Job:
        """Return the job of ``stage`` for ``document``, completed by platform and code version.

        ``code``: classes of the architectures, method, kind or attacks that take part.
        """
        from orchestrator.codeversion import code_version

        modules = tuple(dict.fromkeys(part.__module__ for part in code))
        own = tuple(name for name in modules if name.startswith("audits."))
        whole = {**document, "code": code_version(stage, own), "platform": self.platform}
        return Job(stage, artefact_key(stage, whole), tuple(dict.fromkeys(needs)), whole, self.plan_hash, **place)

    def job_like(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        match job.stage:
            case "train":
                return self.train_job(self.member(job.member))
            case "rank":
                return self.rank_job()
            case "unlearn":
                return self.unlearn_job(self.by_name[job.member], self.by_label[job.label])
            case "utility":
                return self.utility_job(self.by_name[job.member], self.by_label[job.label])
            case "trace":
                return self.trace_job(job.shadow_set, job.shard, job.kind)
            case "search":
                return self.search_job(job.shadow_set, self.by_label[job.label], job.kind, job.shard)
            case "radii":
                return self.radius_job(job.shadow_set, self.by_label[job.label])
        return self.score_job(job.shadow_set, self.by_label[job.label])


def is_target_like(member: Member) -> bool:
    """Is this model made as targets are? The auditor's ranking population is; shadows are the attacker's."""
    return member.role in ("target", "ranking")


def open_scheduler(plan: Plan, store: Store | None = None, data: Dataset | None = None) -> Scheduler:
    """Return the scheduler of a plan on its data set, or on ``data`` in place of it."""
    return Scheduler(plan, data or data_of(plan.data.name, plan.data.root), device_of(plan), store)


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
