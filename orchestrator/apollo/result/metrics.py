"""Numbers of an Apollo result that trackers and sweeps read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.apollo.result.rows import RATES, AttackRow, DiscoveryRow, FrontRow, UtilityRow
from orchestrator.judgement.estimate import Estimate
from orchestrator.report.metrics import Logged, flat, rows_of

OTHER_RATES = (Logged("{unlearner}.{attack}.{metric}_at_{promised_fpr:g}", RATES),)
"""Rates at another promised false-positive rate than the first carry it in their name."""


def metrics(document: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return ``unlearner.attack.metric`` of a setting, and ``unlearner.utility.metric`` averaged over targets.

    Of a trade: ``front.auc`` and ``front.accuracy`` with the ends of their intervals, ``front.on_front`` (0 or 1) and
    ``front.share``. What is void is left out: the TPR and the discoveries of rows whose promised rate is broken.
    """
    table = rows_of(document, "table", AttackRow, setting)
    rows = [replace(row, tpr=Estimate()) if row.void else row for row in table]
    first = document["table"][0]["promised_fpr"]
    return (
        flat(row for row in rows if row.promised_fpr == first)
        | flat((row for row in rows if row.promised_fpr != first), OTHER_RATES)
        | flat(row for row in rows_of(document, "discoveries", DiscoveryRow, setting) if not row.void)
        | flat(rows_of(document, "utility", UtilityRow))
        | flat(rows_of(document.get("front") or {}, "settings", FrontRow, setting))
    )
