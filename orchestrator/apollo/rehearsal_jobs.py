"""The jobs of a rehearsal: shadows, the evidence about them, and what an attack finds of them; none about a target."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, in_order
from orchestrator.apollo.stage_jobs import StageJobs
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.jobs.keys import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from audits.apollo.design.partition import Member
    from orchestrator.apollo.plan import UnlearningMethod


class RehearsalJobs(StageJobs):
    """Makes the jobs by which an attack is judged on shadows that play the target."""

    def rehearse_job(self, shadow_set: int, entry: UnlearningMethod, kind: str, shard: int) -> Job:
        """Return the job that gathers one kind of evidence about shadows alone, for one method and one shard."""
        return self.gathering_job("rehearse", shadow_set, entry, kind, shard)

    def appraise_job(self, shadow_set: int, entry: UnlearningMethod, attack: str) -> Job:
        """Return the job that says what ``attack`` finds of the shadows of a set that play the target."""
        shards = range(self.shards(shadow_set))
        evidence = {
            kind: [self.rehearse_job(shadow_set, entry, kind, shard).key for shard in shards]
            for kind in ATTACKS[attack].reads
        }
        document = {
            "evidence": evidence,
            "label": entry.label,
            "attack": attack,
            "candidates": digest(self.partition.candidates[shadow_set].ids),
            "retained": bool(self.partition.candidates[shadow_set].retained.any()),
        }
        place: dict[str, Any] = {"label": entry.label, "kind": attack, "shadow_set": shadow_set}
        return self.job("appraise", document, chain(*evidence.values()), [ATTACKS[attack]], **place)

    def rehearsal(self, label: str, attack: str) -> list[Job]:
        """Return every job of the rehearsal of ``attack`` against the method ``label``, each behind what it needs."""
        entry, kinds = self.by_label[label], in_order(ATTACKS[attack].reads)
        sets = range(self.partition.split.shadow_sets)
        places = [(shadow_set, shard) for shadow_set in sets for shard in range(self.shards(shadow_set))]
        originals = dict.fromkeys(role for kind in kinds for role in KINDS[kind].originals())
        read = dict.fromkeys(role for kind in kinds for role in KINDS[kind].reads)
        changed = self.shadows_of(read) if entry.method != "identity" else []
        return [
            *(self.train_job(member) for member in self.shadows_of(originals | read)),
            *(self.unlearn_job(member, entry) for member in changed),
            *(self.trace_job(*place, kind) for place in places for kind in kinds if KINDS[kind].traced),
            *(self.rehearse_job(place[0], entry, kind, place[1]) for place in places for kind in kinds),
            *(self.appraise_job(shadow_set, entry, attack) for shadow_set in sets),
        ]

    def shadows_of(self, roles: Iterable[str]) -> list[Member]:
        """Return the shadows of ``roles`` ("online", "offline") of all sets, as far as searches use them."""
        places = [(role, shadow_set) for role in roles for shadow_set in range(self.partition.split.shadow_sets)]
        return [member for place in places for group in self.groups(*place) for member in group]
