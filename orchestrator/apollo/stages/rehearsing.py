"""Stages rehearse and appraise: evidence for which no target is asked, and what an attack finds of shadows by it.

Settings of an attack are chosen by it: shadows play the target (``audits.apollo.rehearsal``). No model of a target is
read, whether it was trained or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, Case, Evidence
from audits.apollo.rehearsal import rehearsed
from audits.queries.nobody import Nobody
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.searching import (
    EVIDENCE,
    TRACE,
    groups,
    population,
    questions,
    search_settings,
)
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays, unpack_arrays

if TYPE_CHECKING:
    from audits.apollo.evidence import Part

APPRAISAL = "appraisal.safetensors"
"""``half``, ``shadow`` and ``auc`` (P,) of the shadows of a set that played the target."""


def rehearse(context: Context, job: Job) -> dict[str, bytes]:
    """Gather one kind of evidence about the shadows of one method, for one shard of candidates; no target is asked."""
    kind = KINDS[job.kind]
    shadows: dict[str, Any] = {role: groups(context, job, role, original=not kind.traced) for role in kind.reads}
    targets: dict[str, Any] = {kind.part.access: Nobody(kind.part.access, len(context.design.data.classes))}
    traced = job.document["trace"]
    case = Case(
        questions(context, job),
        search_settings(context),
        **shadows,
        **targets,
        trace=unpack_arrays(context.store.get("trace", traced[0]).read(TRACE)) if traced else {},
        earlier={name: part(context, name, [key]) for name, key in job.document["after"].items()},
        population=population(context) if "population" in kind.settings else None,
        budget=context.design.budget,
    )
    return {EVIDENCE: pack_arrays(kind().gather(case).arrays())}


def appraise(context: Context, job: Job) -> dict[str, bytes]:
    """Say what an attack finds of the shadows of a set, each in the place of a target."""
    parts = {kind: part(context, kind, keys) for kind, keys in job.document["evidence"].items()}
    retained = bool(context.design.partition.candidates[job.shadow_set].retained.any())
    found = rehearsed(ATTACKS[job.kind](), Evidence(parts), retained=retained)
    return {APPRAISAL: pack_arrays({"half": found.half, "shadow": found.shadow, "auc": found.auc})}


def part(context: Context, kind: str, keys: list[str]) -> Part:
    """Return the rehearsed part of ``kind``, its shards joined."""
    found = KINDS[kind].part
    return found.joined([found.of(unpack_arrays(context.store.get("rehearse", key).read(EVIDENCE))) for key in keys])
