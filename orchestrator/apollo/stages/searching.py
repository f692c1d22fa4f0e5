"""Stages trace and search: walks of shadows, and the answers that pseudo-targets and targets give along them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from audits.apollo.evidence import KINDS, Case, Group, Questions, SearchSettings
from audits.queries.oracles import label_oracle, logit_oracle, posterior_oracle
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import original_models, stored_model, unlearned_models
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays, unpack_arrays

if TYPE_CHECKING:
    from audits.apollo.evidence import Part
    from audits.queries.access import Access

EVIDENCE = "evidence.safetensors"
TRACE = "trace.safetensors"


def trace(context: Context, job: Job) -> dict[str, bytes]:
    """Search with original shadows only, once for all unlearning methods, for one shard of candidates."""
    kind = KINDS[job.kind]
    shadows: dict[str, Any] = {role: groups(context, job, role, original=True) for role in kind.originals()}
    return {TRACE: pack_arrays(kind().trace(Case(questions(context, job), search_settings(context), **shadows)))}


def search(context: Context, job: Job) -> dict[str, bytes]:
    """Gather one kind of evidence about one unlearning method, for one shard of candidates."""
    return {EVIDENCE: pack_arrays(KINDS[job.kind]().gather(case(context, job)).arrays())}


def case(context: Context, job: Job, targets: Mapping[str, Any] | None = None) -> Case:
    """Return all that the job's kind of evidence may use, and nothing beyond its access.

    ``targets``: what answers in their place, by access; None: each target of the job.
    """
    kind = KINDS[job.kind]
    shadows: dict[str, Any] = {role: groups(context, job, role, original=not kind.traced) for role in kind.reads}
    traced = job.document["trace"]
    return Case(
        questions(context, job),
        search_settings(context),
        **shadows,
        **(oracles(context, job, kind.part.access) if targets is None else targets),
        trace=unpack_arrays(context.store.get("trace", traced[0]).read(TRACE)) if traced else {},
        earlier={name: part(context, name, [key], job.stage) for name, key in job.document["after"].items()},
        population=population(context) if "population" in kind.settings else None,
        budget=context.design.budget,
    )


def groups(context: Context, job: Job, role: str, *, original: bool) -> tuple[Group, Group]:
    """Return the shadows of both halves, with their original models if asked, and with the unlearned ones of a method.

    A trace has no method: its shadows come without unlearned models.
    """
    import numpy as np

    ids = context.design.partition.candidates[job.shadow_set].ids[context.design.rows(job.shadow_set, job.shard)]
    found = []
    for members in context.design.groups(role, job.shadow_set):
        inside = np.stack([np.isin(ids, member.forget) for member in members])
        outside = ~np.stack([np.isin(ids, member.train) for member in members])
        unlearned = unlearned_models(context, members, context.design.by_label[job.label]) if job.label else []
        found.append(Group(original_models(context, members) if original else [], unlearned, inside, outside))
    return found[0], found[1]


def oracles(context: Context, job: Job, access: Access) -> dict[str, Any]:
    """Return access to each target of the job: of one level, and of no other."""
    entry = context.design.by_label[job.label]
    targets = {
        member.index: stored_model(context, context.design.unlearned(member, entry), member)
        for member in context.design.targets_of(job.shadow_set)
    }
    open_oracle: Any = {"labels": label_oracle, "posteriors": posterior_oracle, "logits": logit_oracle}[access]
    return {access: {index: open_oracle(model) for index, model in targets.items()}}


def part(context: Context, kind: str, keys: list[str], stage: str = "search") -> Part:
    """Return the part of ``kind`` that jobs of a stage stored, its shards joined."""
    found = KINDS[kind].part
    return found.joined([found.of(unpack_arrays(context.store.get(stage, key).read(EVIDENCE))) for key in keys])


def questions(context: Context, job: Job) -> Questions:
    """Return the candidates of one shard, as the search reads them."""
    rows = context.design.rows(job.shadow_set, job.shard)
    asked = context.design.partition.candidates[job.shadow_set]
    x, y = context.tensors(asked.ids[rows]).all()
    data = context.design.data
    return Questions(
        x.flatten(1), y, asked.ids[rows], asked.target[rows], data.shape, data.value_range, context.plan.seed
    )


def population(context: Context) -> Questions:
    """Return points that no model trained on."""
    import numpy as np

    ids, data = context.design.population(), context.design.data
    x, y = context.tensors(ids).all()
    nobody = np.full(len(ids), -1, dtype=np.int64)
    return Questions(x.flatten(1), y, ids, nobody, data.shape, data.value_range, context.plan.seed)


def search_settings(context: Context) -> SearchSettings:
    """Return the plan's settings of the search."""
    return SearchSettings(**context.plan.audit.search.model_dump(exclude={"shadows"}))
