"""The result of a toy audit: one line for each setting and attack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from audits.statistics.judged import Judged
from audits.statistics.roc import auc
from orchestrator.engine.kind import Finished
from orchestrator.engine.run.scores import joined_scores
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.judgement.rows import Control
from orchestrator.report.judged import judged_rows
from orchestrator.report.result import FinishedRun


def table(scores: pa.Table) -> list[dict[str, Any]]:
    """Return the mean AUC over targets of each setting and attack."""
    columns = {name: scores[name].to_numpy() for name in scores.column_names}
    rows = []
    for setting, attack in dict.fromkeys(zip(columns["setting"], columns["attack"], strict=True)):
        own = (columns["setting"] == setting) & (columns["attack"] == attack)
        each = [
            auc(columns["score"][points], columns["member"][points])
            for target in np.unique(columns["target"][own])
            for points in [own & (columns["target"] == target)]
        ]
        rows.append({"setting": setting, "attack": attack, "targets": len(each), "auc": float(np.mean(each))})
    return rows


def summed_up(finished: Finished) -> dict[str, Any]:
    """Return the table of a finished run."""
    return {"table": table(finished.scores)}


def judged(scores: pa.Table) -> list[Judged]:
    """Return what each attack said."""
    return judged_rows(scores, scores["member"].to_numpy())


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return the numbers by which a sweep compares settings."""
    return {f"{row['attack']}.auc": row["auc"] for row in table(joined_scores([setting], store))}


def metrics(document: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return the numbers that are tracked."""
    return {f"{row['attack']}.auc": row["auc"] for row in document["table"] if row["setting"] == setting}


@dataclass(frozen=True, kw_only=True)
class ToyRow:
    """The mean AUC over targets of one attack in one setting."""

    setting: str
    attack: str
    targets: int
    auc: float


@dataclass(frozen=True, kw_only=True)
class ToyResult(FinishedRun):
    """The content of result.json of a toy run."""

    KIND: ClassVar[str] = "toy"

    table: tuple[ToyRow, ...]
    controls: tuple[Control, ...] = ()
