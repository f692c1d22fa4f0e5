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
        "warnings": list(
            dict.fromkeys([*warnings, *control_warnings(rows["cells"], plan.audit.level), *fit_warnings(fits)])
        ),
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


def control_warnings(cells: Sequence[Mapping[str, Any]], level: float) -> list[str]:
    """Return a warning for each setting in which attacks call fresh models members more often than β allows.

    A cell counts where the whole interval of its rate lies above β; of many cells some do by luck, and those of one
    setting share models and points.
    """
    lines = []
    for setting in dict.fromkeys(str(cell["setting"]) for cell in cells):
        tested = [
            cell
            for cell in cells
            if cell["setting"] == setting and cell.get("attained") is not None and cell.get("fresh_fpr_low") is not None
        ]
        above = [cell for cell in tested if cell["fresh_fpr_low"] > cell["beta"]]
        if above:
            listed = ", ".join(f"{cell['attack']} on {cell['selection']} {cell['fresh_fpr']:.1%}" for cell in above)
            lines.append(
                f"setting {setting}: fresh models are called members more often than {above[0]['beta']:.1%} in "
                f"{len(above)} of {len(tested)} cells ({listed}; by luck about {len(tested) * (1 - level) / 2:.1f}); "
                "do not quote precision there"
            )
    return lines
