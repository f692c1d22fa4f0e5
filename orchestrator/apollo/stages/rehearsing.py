"""Stages rehearse and appraise: evidence for which no target is asked, and what an attack finds of shadows by it.

Settings of an attack are chosen by it: shadows play the target (``audits.apollo.rehearsal``). No model of a target is
read, whether it was trained or not.
"""

from __future__ import annotations

from typing import Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, Evidence
from audits.apollo.rehearsal import rehearsed
from audits.queries.nobody import Nobody
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.searching import EVIDENCE, case, part
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays

APPRAISAL = "appraisal.safetensors"
"""``half``, ``shadow`` and ``auc`` (P,) of the shadows of a set that played the target."""


def rehearse(context: Context, job: Job) -> dict[str, bytes]:
    """Gather one kind of evidence about the shadows of one method, for one shard of candidates; no target is asked."""
    kind = KINDS[job.kind]
    nobody: dict[str, Any] = {kind.part.access: Nobody(kind.part.access, len(context.design.data.classes))}
    return {EVIDENCE: pack_arrays(kind().gather(case(context, job, nobody)).arrays())}


def appraise(context: Context, job: Job) -> dict[str, bytes]:
    """Say what an attack finds of the shadows of a set, each in the place of a target."""
    parts = {kind: part(context, kind, keys, "rehearse") for kind, keys in job.document["evidence"].items()}
    retained = bool(context.design.partition.candidates[job.shadow_set].retained.any())
    found = rehearsed(ATTACKS[job.kind](), Evidence(parts), retained=retained)
    return {APPRAISAL: pack_arrays({"half": found.half, "shadow": found.shadow, "auc": found.auc})}
