"""Stages trace and search: walks of shadows, and the answers that pseudo-targets and targets give along them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.jobs import Job
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_arrays, unpack_arrays

if TYPE_CHECKING:
    from audits.evidence import Case, Group, Part, Questions, SearchSettings
    from audits.oracles import Access

EVIDENCE = "evidence.safetensors"
TRACE = "trace.safetensors"


def trace(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Search with original shadows only, once for all unlearning methods, for one shard of candidates."""
    from audits.evidence import KINDS, Case

    kind = KINDS[job.kind]
    shadows: dict[str, Any] = {role: groups(shop, job, role, original=True) for role in kind.reads}
    return {TRACE: pack_arrays(kind().trace(Case(questions(shop, job), search_settings(shop), **shadows)))}


def search(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Gather one kind of evidence about one unlearning method, for one shard of candidates."""
    from audits.evidence import KINDS

    return {EVIDENCE: pack_arrays(KINDS[job.kind]().gather(case(shop, job)).arrays())}


def case(shop: Workshop, job: Job) -> Case:
    """Return all that the job's kind of evidence may use, and nothing beyond its access."""
    from audits.evidence import KINDS, Case

    kind = KINDS[job.kind]
    shadows: dict[str, Any] = {role: groups(shop, job, role, original=not kind.traced) for role in kind.reads}
    traced = job.document["trace"]
    return Case(
        questions(shop, job),
        search_settings(shop),
        **shadows,
        **oracles(shop, job, kind.part.access),
        trace=unpack_arrays(shop.store.get("trace", traced[0]).read(TRACE)) if traced else {},
        earlier={name: part(shop, name, [key]) for name, key in job.document["after"].items()},
        population=population(shop) if "population" in kind.settings else None,
        budget=shop.scheduler.budget,
    )


def groups(shop: Workshop, job: Job, role: str, *, original: bool) -> tuple[Group, Group]:
    """Return the shadows of both halves, with their original models if asked, and with the unlearned ones of a method.

    A trace has no method: its shadows come without unlearned models.
    """
    import numpy as np

    from audits.evidence import Group

    ids = shop.scheduler.partition.candidates[job.shadow_set].ids[shop.scheduler.rows(job.shadow_set, job.shard)]
    found = []
    for members in shop.scheduler.groups(role, job.shadow_set):
        inside = np.stack([np.isin(ids, member.forget) for member in members])
        outside = ~np.stack([np.isin(ids, member.train) for member in members])
        unlearned = shop.forgetful(members, shop.methods[job.label]) if job.label else []
        found.append(Group(shop.originals(members) if original else [], unlearned, inside, outside))
    return found[0], found[1]


def oracles(shop: Workshop, job: Job, access: Access) -> dict[str, Any]:
    """Return access to each target of the job: of one level, and of no other."""
    from audits.oracles import label_oracle, logit_oracle, posterior_oracle

    entry = shop.methods[job.label]
    targets = {
        member.index: shop.model(shop.scheduler.unlearned(member, entry), member)
        for member in shop.scheduler.targets_of(job.shadow_set)
    }
    open_oracle: Any = {"labels": label_oracle, "posteriors": posterior_oracle, "logits": logit_oracle}[access]
    return {access: {index: open_oracle(model) for index, model in targets.items()}}


def part(shop: Workshop, kind: str, keys: list[str]) -> Part:
    """Return the stored part of ``kind``, its shards joined."""
    from audits.evidence import KINDS

    found = KINDS[kind].part
    return found.joined([found.of(unpack_arrays(shop.store.get("search", key).read(EVIDENCE))) for key in keys])


def questions(shop: Workshop, job: Job) -> Questions:
    """Return the candidates of one shard, as the search reads them."""
    from audits.evidence import Questions

    rows = shop.scheduler.rows(job.shadow_set, job.shard)
    asked = shop.scheduler.partition.candidates[job.shadow_set]
    x, y = shop.tensors(asked.ids[rows]).all()
    data = shop.scheduler.data
    return Questions(x.flatten(1), y, asked.ids[rows], asked.target[rows], data.shape, data.value_range, shop.plan.seed)


def population(shop: Workshop) -> Questions:
    """Return points that no model trained on."""
    import numpy as np

    from audits.evidence import Questions

    ids, data = shop.scheduler.population(), shop.scheduler.data
    x, y = shop.tensors(ids).all()
    nobody = np.full(len(ids), -1, dtype=np.int64)
    return Questions(x.flatten(1), y, ids, nobody, data.shape, data.value_range, shop.plan.seed)


def search_settings(shop: Workshop) -> SearchSettings:
    """Return the plan's settings of the search."""
    from audits.evidence import SearchSettings

    return SearchSettings(**shop.plan.audit.search.model_dump(exclude={"shadows"}))
