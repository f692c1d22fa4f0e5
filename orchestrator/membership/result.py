"""What a finished membership audit says, as written to result.json (schema ``orch.result/1``; see docs/result.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from orchestrator.membership.schedule import MembershipScheduler
    from orchestrator.setting import Setting
    from orchestrator.store import Store

GAP = 0.05
"""Train minus test accuracy from which a model counts as over-fitted (spec of the audit: five points)."""


def summed_up(
    name: str, settings: Sequence[Setting], store: Store, scheduler: MembershipScheduler, counts: Mapping[str, int]
) -> dict[str, Any]:
    """Return the document of a run: cells, fit, selections, reconstruction, and everything needed to run it again."""
    from orchestrator.result import SCHEMA, versions

    plan = scheduler.plan
    found = {setting.name: details(setting, store) for setting in settings}
    rows = {
        field: [{"setting": place, **row} for place, parts in found.items() for row in parts[field]]
        for field in ("cells", "selections", "reconstruction", "exposed")
    }
    fits = [row for setting in settings for row in fit_rows(setting, store)]
    notes = dict.fromkeys([*plan.notes, *(line for setting in settings for line in setting.plan.notes)])
    warnings = [*plan.warnings, *(line for parts in found.values() for line in parts["warnings"])]
    return {
        "schema": SCHEMA,
        "name": name,
        "kind": plan.kind,
        "seed": plan.seed,
        "settings": [
            {"setting": setting.name, "overrides": plain(setting.overrides), "mode": setting.plan.audit.mode}
            for setting in settings
        ],
        "table": rows["cells"],
        "fit": fits,
        "selections": rows["selections"],
        "reconstruction": rows["reconstruction"],
        "exposed": rows["exposed"],
        "warnings": list(dict.fromkeys([*warnings, *control_warnings(rows["cells"]), *fit_warnings(fits)])),
        "notes": list(notes),
        "population": dict(counts),
        "level": plan.audit.level,
        "plan": plan.resolved(),
        "plan_hash": plan.plan_hash,
        "versions": versions(),
    }


def plain(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a setting changes, without the note that it has no variants of its own."""
    return {name: value for name, value in overrides.items() if name != "variants"}


def details(setting: Setting, store: Store) -> dict[str, Any]:
    """Return what the judge stage left beside the scores: cells, selections, reconstruction, exposed points."""
    from orchestrator.membership.judging import CELLS

    (job,) = setting.jobs.score_units
    found: dict[str, Any] = json.loads(store.get("judge", job.key).read(CELLS))
    return found


def fit_rows(setting: Setting, store: Store) -> list[dict[str, Any]]:
    """Return one row for each side × group of models: mean accuracies, their gap, and a flag where it is too large."""
    from orchestrator.stages import METRICS

    asked_side = "other" if setting.plan.audit.mode == "II" else "own"
    measured: dict[tuple[str, str], list[dict[str, float]]] = {}
    for job in setting.jobs.train_jobs:
        side, group, _ = job.member.split("-")
        place = "asked" if side == asked_side else "teacher"
        measured.setdefault((place, group), []).append(json.loads(store.get("fit", job.key).read(METRICS)))
    rows = []
    for (side, group), models in measured.items():
        train = float(np.mean([model["train_accuracy"] for model in models]))
        tests = [model["test_accuracy"] for model in models if "test_accuracy" in model]
        test = float(np.mean(tests)) if tests else None
        gap = None if test is None else train - test
        rows.append(
            {
                "setting": setting.name,
                "side": side,
                "group": group,
                "models": len(models),
                "train_accuracy": train,
                "test_accuracy": test,
                "gap": gap,
                "flag": "overfitted" if gap is not None and gap > GAP else "",
            }
        )
    return rows


def fit_warnings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each setting whose targets are not normally fitted."""
    return [
        f"setting {row['setting']}: targets are over-fitted (train {row['train_accuracy']:.3f}, test "
        f"{row['test_accuracy']:.3f}); what is found does not speak about normally fitted models"
        for row in rows
        if row["side"] == "asked" and row["group"] == "target" and row["flag"]
    ]


def control_warnings(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each cell whose rate of false calls on fresh models lies above β with its whole interval."""
    return [
        f"control failed: {cell['attack']} on {cell['selection']} (setting {cell['setting']}) calls "
        f"{cell['fresh_fpr']:.1%} of pairs of fresh models members, promised {cell['beta']:.1%}; its precision is "
        "not to be trusted"
        for cell in cells
        if cell.get("attained") is not None
        and cell.get("fresh_fpr_low") is not None
        and cell["fresh_fpr_low"] > cell["beta"]
    ]
