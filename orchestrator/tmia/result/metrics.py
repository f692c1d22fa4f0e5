"""Numbers of a TMIA result that trackers and sweeps read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.judgement.estimate import Estimate
from orchestrator.report.metrics import Logged, flat, rows_of
from orchestrator.tmia.result.document import cells_of
from orchestrator.tmia.result.given_rows import cell_form
from orchestrator.tmia.result.rows import FitRow, OverfittedRow

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

COMPARED = (Logged("{selection}.{attack}.{metric}", ("precision", "coverage")),)


def metrics(document: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return ``selection.attack.metric`` of a setting, accuracies as ``fit.side.group.metric``, and the control.

    What is void is left out: precision and coverage of cells that break their promise on null models.
    """
    cells = rows_of(document, "table", cell_form(document["plan"]), setting)
    fits = rows_of(document, "fit", FitRow, setting)
    memorised = rows_of(document, "overfitted", OverfittedRow, setting)
    undefined = Estimate()
    quoted = [replace(cell, precision=undefined, coverage=undefined) if cell.void else cell for cell in cells]
    return flat(quoted) | flat(fits) | flat(memorised)


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return precision and coverage of each selection × attack of a setting whose jobs are done."""
    return flat(cells_of(setting, store), COMPARED)
