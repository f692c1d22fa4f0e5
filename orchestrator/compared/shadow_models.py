"""Units of an attack's scores that have shadow models of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.statistics.judged import Judged
from orchestrator.engine.kind import OWN, SHARED, ScoresTable

if TYPE_CHECKING:
    import pyarrow as pa


def with_shadows(
    judged: Sequence[Judged], table: ScoresTable | None, scores: pa.Table
) -> Iterator[tuple[Judged, bool]]:
    """Yield each attack, its units those that have shadow models of their own, and whether there are such.

    Targets that share shadow models are one unit where there are other targets with others. Where all share the same
    ones, targets stay the units, and no interval over them lets shadow models vary. ``table`` None: of scores from
    elsewhere each target counts as one with its own.
    """
    shadows = OWN if table is None else table.shadows
    sets = {} if shadows in (OWN, SHARED) else _sets(scores, shadows)
    for each in judged:
        if shadows in (OWN, SHARED):
            yield each, shadows == OWN
            continue
        own = np.array([sets[each.setting, target] for target in each.target.tolist()], np.int64)
        several = np.unique(own).size > 1
        yield replace(each, cluster=own) if several else each, several or np.unique(each.unit).size == 1


def _sets(scores: pa.Table, column: str) -> dict[tuple[str, Any], int]:
    """Return setting and target → the set of shadow models that serves the target."""
    distinct = scores.select(["setting", "target", column]).group_by(["setting", "target", column]).aggregate([])
    columns = (distinct[name].to_pylist() for name in ("setting", "target", column))
    return {(setting, target): number for setting, target, number in zip(*columns, strict=True)}
