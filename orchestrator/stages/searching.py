"""Stage search: walks of the shadows and the answers that pseudo-targets and targets give along them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.schedule import Job
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_arrays

if TYPE_CHECKING:
    from torch import nn

    from audits.attacks.gather import Group, Questions
    from audits.attacks.search import SearchSettings
    from audits.data.partition import Candidates
    from audits.oracles import LabelOracle

EVIDENCE = "evidence.safetensors"


def search(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Search with shadows and ask pseudo-targets and targets, for one shard of candidates."""
    from audits.attacks.evidence import to_arrays

    asked = questions(shop, job)
    parts = online(shop, job, asked) if job.label else offline(shop, job, asked)
    arrays: dict[str, Any] = {}
    for name, part in parts.items():
        arrays |= to_arrays(part, name)
    return {EVIDENCE: pack_arrays(arrays)}


def online(shop: Workshop, job: Job, questions: Questions) -> dict[str, Any]:
    """Return the walks and posteriors of one method."""
    from audits.attacks.gather import Group, gather_online, gather_posteriors
    from audits.oracles import posterior_oracle

    entry = shop.methods[job.label]
    groups = []
    for number in (1, 2):
        members = shop.scheduler.members("shadow", job.shadow_set, number)
        inside = shop.scheduler.partition.membership(members, questions.ids)
        groups.append(Group(shop.originals(members), shop.forgetful(members, entry), inside))
    targets = {
        member.index: shop.model(shop.scheduler.unlearned(member, entry))
        for member in shop.scheduler.targets_of(job.shadow_set)
    }
    settings = search_settings(shop)
    pair: tuple[Group, Group] = (groups[0], groups[1])
    walks = gather_online(pair, label_oracles(targets), questions, settings)
    posteriors = gather_posteriors(
        [*groups[0].unlearned, *groups[1].unlearned],
        np.concatenate([group.inside for group in groups]),
        {index: posterior_oracle(model) for index, model in targets.items()},
        questions,
    )
    return {**walks, "posteriors": posteriors}


def offline(shop: Workshop, job: Job, questions: Questions) -> dict[str, Any]:
    """Return the walks of every method along one search of the offline shadows."""
    from audits.attacks.gather import gather_offline

    first, second = (shop.scheduler.members("offline", job.shadow_set, number) for number in (1, 2))
    targets = shop.scheduler.targets_of(job.shadow_set)
    judges, oracles = {}, {}
    for label, entry in shop.methods.items():
        judges[label] = (shop.forgetful(first, entry), shop.forgetful(second, entry))
        oracles[label] = label_oracles(
            {member.index: shop.model(shop.scheduler.unlearned(member, entry)) for member in targets}
        )
    settings = search_settings(shop)
    return gather_offline((shop.originals(first), shop.originals(second)), judges, oracles, questions, settings)


def questions(shop: Workshop, job: Job) -> Questions:
    """Return the candidates of one shard, as the search reads them."""
    from audits.attacks.gather import Questions

    rows = shop.scheduler.rows(job.shadow_set, job.shard)
    asked: Candidates = shop.scheduler.partition.candidates[job.shadow_set]
    x, y = shop.tensors(asked.ids[rows]).all()
    data = shop.scheduler.data
    return Questions(x.flatten(1), y, asked.ids[rows], asked.target[rows], data.shape, data.value_range, shop.plan.seed)


def search_settings(shop: Workshop) -> SearchSettings:
    """Return the plan's settings of the search."""
    from audits.attacks.search import SearchSettings

    return SearchSettings(**shop.plan.audit.search.model_dump(exclude={"shadows"}))


def label_oracles(models: dict[int, nn.Module]) -> dict[int, LabelOracle]:
    """Return label-only access to each target by its index."""
    from audits.oracles import label_oracle

    return {index: label_oracle(model) for index, model in models.items()}
