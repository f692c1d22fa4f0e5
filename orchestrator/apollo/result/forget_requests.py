"""Rows about forget requests: how unique their gradients were, and what that predicts of the attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audits.statistics.intervals import ibragimov_mueller_t
from audits.statistics.rank_correlation import spearman
from audits.statistics.summary import Cell, cells
from audits.uniqueness.watching import RANKING, percentile
from orchestrator.apollo.result.rows import RequestCorrelationRow, RequestRow
from orchestrator.apollo.score_table import POOLED, REPETITION
from orchestrator.apollo.stages.disclosure import DISCLOSURE, SCORES
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.judgement.estimate import Estimate

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

Watched = Mapping[int, Mapping[str, NDArray[Any]]]
"""What was seen of each target's training points (stage disclosure), by target."""


def disclosure_rows(
    columns: Mapping[str, Any], settings: Sequence[Setting], store: Store, main: str, level: float
) -> tuple[list[RequestRow], list[RequestCorrelationRow]]:
    """Return the forget candidates of the setting ``main``, target by target, and the correlations of all settings.

    ``columns``: the scores table. Both are empty unless the plan has ``audit.disclosure``.
    """
    watched = watched_targets(settings, store)
    if not any(watched.values()):
        return [], []
    points: list[RequestRow] = []
    correlations: list[RequestCorrelationRow] = []
    for cell in cells(columns):
        targets = watched.get(cell.setting) or {}
        if targets and cell.setting == main and not points:
            points = request_rows(cell, targets)
        if targets:
            correlations += correlation_rows(cell, targets, level)
    return points, correlations


def watched_targets(settings: Sequence[Setting], store: Store) -> dict[str, Watched]:
    """Return what was seen of targets by setting; settings pooled together have all of them, numbered as scores are."""
    found: dict[str, dict[int, Mapping[str, NDArray[Any]]]] = {POOLED: {}}
    for place, setting in enumerate(settings):
        own: dict[int, Mapping[str, NDArray[Any]]] = {
            int(job.member.rpartition("-")[2]): unpack_arrays(store.get("disclosure", job.key).read(DISCLOSURE))
            for job in setting.of("disclosure")
        }
        found[POOLED] |= {REPETITION * place + target: arrays for target, arrays in own.items()}
        found[setting.name] = own
    return dict(found)


def request_rows(cell: Cell, targets: Watched) -> list[RequestRow]:
    """Return one row for each forget candidate of a setting, of any of whose cells ``cell`` is."""
    found: list[RequestRow] = []
    for target, arrays in targets.items():
        rows, places = candidates_of(cell, target, arrays)
        share = percentile(arrays[RANKING])
        found += [
            RequestRow(
                target=target,
                point_id=int(cell.columns["point_id"][row]),
                label=int(cell.columns["label"][row]),
                gnq_log=float(arrays[RANKING][place]),
                percentile=float(share[place]),
                bits=float(arrays["bits"][place]),
                squared_norm=float(arrays["gradient_norm"][place]),
                loss=float(arrays["final_loss"][place]),
            )
            for row, place in zip(rows, places, strict=True)
        ]
    return found


def correlation_rows(cell: Cell, targets: Watched, level: float) -> list[RequestCorrelationRow]:
    """Return, per score, the rank correlation with the attack over forget candidates: mean and t interval over targets.

    Ends beyond −1 and 1 are cut. Targets whose candidates all have one score, or one answer, have no correlation and
    are not counted.
    """
    each: dict[str, list[float]] = {name: [] for name in SCORES}
    for target, arrays in targets.items():
        rows, places = candidates_of(cell, target, arrays)
        for name in SCORES:
            each[name] += spearman(arrays[name][places][None], cell.scores[rows][None]).tolist()
    found: list[RequestCorrelationRow] = []
    for name, values in each.items():
        known = [value for value in values if value == value]
        low, high = np.clip(ibragimov_mueller_t(known, level), -1, 1).tolist() if len(known) > 1 else (None, None)
        found.append(
            RequestCorrelationRow(
                setting=cell.setting,
                unlearner=cell.unlearner,
                attack=cell.attack,
                score=name,
                control=name != RANKING,
                targets=len(known),
                spearman=Estimate(float(np.mean(known)) if known else None, low, high),
            )
        )
    return found


def candidates_of(
    cell: Cell, target: int, arrays: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of a target's forget candidates in ``cell``, and the places of these points in ``arrays``."""
    rows = np.flatnonzero(cell.member & (cell.target == target))
    order = np.argsort(arrays["point_id"])
    places = order[np.searchsorted(arrays["point_id"], cell.columns["point_id"][rows], sorter=order)]
    return rows, places
