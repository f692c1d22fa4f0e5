"""A small design: four targets, two shadow sets, and who trains on what in it."""

from __future__ import annotations

import numpy as np

from audits.apollo.design.partition import Partition, Split, make_partition

SPLIT = Split(
    targets=4,
    train_size=40,
    target_pool=160,
    shadow_pool=200,
    test_pool=60,
    forget=0.2,
    candidates_forget=4,
    candidates_unseen=4,
    shadows=8,
    offline_shadows=4,
    targets_per_shadow_set=2,
)


def design(split: Split = SPLIT, seed: int = 3) -> Partition:
    return make_partition(split.points + 17, split, seed)


def drawn(partition: Partition, role: str, group: int | None = None) -> set[int]:
    chosen = [m for m in partition.members if m.role == role and (group is None or m.group == group)]
    return set(np.concatenate([member.train for member in chosen]).tolist())


def asked_ids(partition: Partition) -> set[int]:
    return set(np.concatenate([asked.ids for asked in partition.candidates]).tolist())
