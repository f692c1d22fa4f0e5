"""The job of each stage: its document, its key, and what it needs first.

A job's document names everything that decides its result; its key is the hash of the document. Jobs are small (index
sets are named by digest): a worker derives the same partition from the plan and looks its own part up.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, in_order
from audits.unlearning import UNLEARNERS
from orchestrator.apollo.ranking_jobs import RankingJobs
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.jobs.keys import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from audits.apollo.design.partition import Member
    from audits.apollo.evidence import Kind
    from audits.training.recipe import Recipe
    from orchestrator.apollo.plan import UnlearningMethod


class StageJobs(RankingJobs):
    """Makes the jobs of one plan on one data set, one at a time; ``device`` is "cpu" or "cuda".

    ``store`` is read by plans that audit memorised or exposed points: their partition needs what ``rank_job`` finds.
    """

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipes of targets and shadows."""
        return (self.plan.recipe, *([self.plan.shadow_recipe] if self.plan.shadow_recipe else []))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of evidence that the plan's attacks read, each behind those that it comes after."""
        read = [kind for name in self.plan.audit.attacks for kind in ATTACKS[name].reads]
        return in_order([*read, *(["apollo"] if self.plan.audit.radii else [])])

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

    def trained(self, member: Member) -> Reference:
        """Return where the trained model of ``member`` stands."""
        name = ("", member.name)
        if name not in self._references:
            self._references[name] = Reference("train", self.train_job(member).key)
        return self._references[name]

    def unlearn_job(self, member: Member, entry: UnlearningMethod) -> Job:
        """Return the job that makes ``member`` forget by the method ``entry``."""
        train = self.trained(member)
        document = {
            "train": train.key,
            "forget": digest(member.forget),
            "count": len(member.forget),
            "method": entry.method,
            "settings": entry.settings,
            "label": self.names_in_seeds[entry.label],
            "seed": self.plan.seed,
            **self.fitting(member),
            "member": member.name,
        }
        code = (*self.architecture(member), UNLEARNERS[entry.method])
        return self.job("unlearn", document, (train.key,), code, member=member.name, label=entry.label)

    def own_start_job(self, member: Member) -> Job:
        """Return the job that trains the target ``member`` again from its own start, without its forget set."""
        document = {
            "data": self.data.fingerprint,
            "points": digest(member.retain),
            "count": len(member.retain),
            **self.fitting(member),
            "seed": self.plan.seed,
            "member": member.name,
        }
        return self.job("own_start", document, (), self.architecture(member), member=member.name)

    def own_start(self, member: Member) -> Reference:
        """Return where the target stands that was trained again from its own start."""
        return Reference("own_start", self.own_start_job(member).key)

    def unlearned(self, member: Member, entry: UnlearningMethod) -> Reference:
        """Return where the unlearned model stands; ``identity`` is the model before unlearning itself."""
        if self.is_given(member, entry):
            return self.given_model("original" if entry.method == "identity" else "weights")
        if entry.method == "identity":
            return self.trained(member)
        name = (entry.label, member.name)
        if name not in self._references:
            self._references[name] = Reference("unlearn", self.unlearn_job(member, entry).key)
        return self._references[name]

    def before(self, member: Member, entry: UnlearningMethod) -> Reference | None:
        """Return where the model stands that ``unlearned`` was made of; None of a given model, if it was not given."""
        if not self.is_given(member, entry):
            return self.trained(member)
        return self.given_model("original") if self.the_target.named(("original",)) else None

    @cached_property
    def _references(self) -> dict[tuple[str, str], Reference]:
        return {}

    def utility_job(self, member: Member, entry: UnlearningMethod) -> Job:
        """Return the job that measures an unlearned target: accuracies, distance from the original, seconds."""
        before, after = self.before(member, entry), self.unlearned(member, entry)
        document = {
            "trained": before.key if before else None,
            "unlearned": after.key,
            "method": entry.method,
            "retain": digest(member.retain),
            "forget": digest(member.forget),
            "test": digest(self.partition.test),
        }
        keys = (*([before.key] if before else []), after.key)
        return self.job("utility", document, keys, self.architecture(member), member=member.name, label=entry.label)

    def trace_job(self, shadow_set: int, shard: int, kind: str) -> Job:
        """Return the job that searches with original shadows only, for all unlearning methods, for one shard."""
        found = KINDS[kind]
        originals = self.original_keys(shadow_set, found)
        document = {"kind": kind, "original": originals, **self.asking(shadow_set, shard, found)}
        needs = tuple(chain(*chain(*originals.values())))
        code = (*self.architectures(), found)
        return self.job("trace", document, needs, code, kind=kind, shadow_set=shadow_set, shard=shard)

    def search_job(self, shadow_set: int, entry: UnlearningMethod, kind: str, shard: int) -> Job:
        """Return the job that gathers one kind of evidence about one method, for one shard."""
        targets = [self.unlearned(member, entry).key for member in self.targets_of(shadow_set)]
        return self.gathering_job("search", shadow_set, entry, kind, shard, targets)

    def gathering_job(
        self,
        stage: str,
        shadow_set: int,
        entry: UnlearningMethod,
        kind: str,
        shard: int,
        targets: Sequence[str] | None = None,
    ) -> Job:
        """Return the job of ``stage`` that gathers evidence from shadows, and from ``targets`` if any are asked."""
        found = KINDS[kind]
        originals = self.original_keys(shadow_set, found)
        unlearned = {
            role: [[self.unlearned(member, entry).key for member in group] for group in self.groups(role, shadow_set)]
            for role in found.reads
        }
        after = {name: self.gathering_job(stage, shadow_set, entry, name, shard, targets).key for name in found.after}
        traced = [self.trace_job(shadow_set, shard, kind).key] if found.traced else []
        document = {
            "kind": kind,
            "method": entry.method,
            "original": originals,
            "unlearned": unlearned,
            **({} if targets is None else {"targets": targets}),
            "after": after,
            "trace": traced,
            **self.asking(shadow_set, shard, found),
        }
        models = (*chain(*chain(*originals.values()), *chain(*unlearned.values())), *(targets or ()))
        place: dict[str, Any] = {"label": entry.label, "kind": kind, "shadow_set": shadow_set, "shard": shard}
        needs, code = (*models, *after.values(), *traced), (*self.architectures(), found)
        return self.job(stage, document, needs, code, **place)

    def original_keys(self, shadow_set: int, kind: type[Kind]) -> dict[str, list[list[str]]]:
        """Return the keys of the original shadows that ``kind`` sees: role → group → keys."""
        return {
            role: [[self.trained(member).key for member in group] for group in self.groups(role, shadow_set)]
            for role in kind.originals()
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

    def radius_job(self, shadow_set: int, entry: UnlearningMethod) -> Job:
        """Return the job that sets estimated radii beside those at which the labels of a set's targets flip."""
        targets = self.targets_of(shadow_set)
        models = [
            [
                self.trained(member).key,
                *(self.unlearned(member, each).key for each in (entry, self.retraining)),
                self.own_start(member).key,
            ]
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
