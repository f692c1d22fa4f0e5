"""The scores table: one row per attack and candidate, from which every metric, figure and report is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.apollo.attacks.base import Attack, Finding
from audits.apollo.design.population import GROUPS
from orchestrator.apollo.q_values import with_q_values

POOLED = "pooled"
REPETITION = 1000
GROUP_ODDS = ("score_forget", "score_retained", "score_unseen")

if TYPE_CHECKING:
    import pyarrow as pa

    from audits.apollo.design.partition import Candidates


def score_rows(
    label: str,
    attack: Attack,
    finding: Finding,
    asked: Candidates,
    labels: np.ndarray[Any, Any],
    shadow_set: int,
    rates: Sequence[float],
) -> pa.Table:
    """Return the rows of one attack on one shadow set; thresholds and p-values come from the finding's null alone.

    The log-odds of the three groups are null for attacks that do not tell them apart.
    """
    import pyarrow as pa

    count = len(asked.ids)
    columns: dict[str, Any] = {
        "unlearner": pa.array([label] * count, pa.string()),
        "attack": pa.array([attack.name] * count, pa.string()),
        "access": pa.array([attack.access] * count, pa.string()),
        "target": pa.array(asked.target.astype(np.int32)),
        "shadow_set": pa.array(np.full(count, shadow_set, np.int32)),
        "point_id": pa.array(asked.ids),
        "group": pa.array([GROUPS[group] for group in asked.group], pa.string()),
        "label": pa.array(labels.astype(np.int32)),
        "score": pa.array(finding.score),
        "queries": pa.array(finding.queries),
        "p_value": pa.array(finding.p_values()),
    }
    for place, name in enumerate(GROUP_ODDS):
        odds = [None] * count if finding.groups is None else finding.groups[:, place]
        columns[name] = pa.array(odds, pa.float64())
    for rate in rates:
        columns[f"decision_{rate:g}"] = pa.array(finding.decide(rate))
    return pa.table(columns)


def whole_table(parts: Sequence[tuple[str, pa.Table]]) -> pa.Table:
    """Return the tables of all settings (name, table) as one, sorted by setting, unlearner, attack, target and point.

    Settings, unlearners and attacks keep the order in which they first appear. ``q_value`` joins ``p_value``: it needs
    the candidates of all shadow sets. Log-odds of three groups are dropped where no attack gives them.
    """
    import pyarrow as pa

    tables = [table.add_column(0, "setting", pa.array([name] * len(table), pa.string())) for name, table in parts]
    joined = pa.concat_tables(tables)
    order = np.lexsort(
        [
            joined["point_id"].to_numpy(),
            joined["target"].to_numpy(),
            *(first_seen(joined[name].to_pylist()) for name in ("attack", "unlearner", "setting")),
        ]
    )
    table = joined.take(pa.array(order)).combine_chunks()
    empty = [name for name in GROUP_ODDS if name in table.column_names and table[name].null_count == len(table)]
    return with_q_values(table.drop_columns(empty))


def pooled(parts: Sequence[tuple[str, pa.Table]]) -> list[tuple[str, pa.Table]]:
    """Return the tables of repeated settings as parts of one setting ``pooled``, with targets that stay apart.

    Target t of the i-th setting becomes target 1000·i + t, and its shadow set likewise.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in parts))}
    found = []
    for name, table in parts:
        for column in ("target", "shadow_set"):
            moved = pc.add(table[column], pa.scalar(REPETITION * places[name], pa.int32()))
            table = table.set_column(table.schema.get_field_index(column), column, moved)
        found.append((POOLED, table))
    return found


def first_seen(words: list[str]) -> np.ndarray[Any, Any]:
    """Return, for each word, the rank of its first appearance."""
    ranks = {word: rank for rank, word in enumerate(dict.fromkeys(words))}
    return np.array([ranks[word] for word in words])
