"""What a finished membership audit says, as written to result.json (schema ``orch.result/1``; see docs/result.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
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
    about_teachers = [setting.name for setting in settings if setting.plan.audit.mode == "II"]
    said = {name: parts["warnings"] for name, parts in found.items()}
    known = {line for lines in said.values() for line in lines}
    known |= {f"variant {name}: {line}" for name, lines in said.items() for line in lines}  # as the plan says it
    warnings = [*(line for line in plan.warnings if line not in known), *setting_warnings(said)]
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
            dict.fromkeys(
                [*warnings, *control_warnings(rows["cells"], plan.audit.level), *fit_warnings(fits, about_teachers)]
            )
        ),
        "notes": list(notes),
        "population": dict(counts),
        "level": plan.audit.level,
        "plan": plan.resolved(),
        "plan_hash": plan.plan_hash,
        "versions": versions(),
    }


def setting_warnings(lines: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the warnings of all settings; those that not all settings share say which ones they are about."""
    found: dict[str, list[str]] = {}
    for name, own in lines.items():
        for line in own:
            found.setdefault(line, []).append(name)
    return [
        line
        if len(names) == len(lines)
        else f"{'setting' if len(names) == 1 else 'settings'} {', '.join(names)}: {line}"
        for line, names in found.items()
    ]


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


def promised(cell: Mapping[str, Any]) -> float | None:
    """Return the false-positive rate that a cell promises, β; None for attacks that promise none."""
    return None if cell["expected_false_positives"] is None else float(cell["beta"])


def above_promise(cell: Mapping[str, Any], name: str = "fresh_fpr") -> bool:
    """Say whether the whole interval of a cell's rate ``name`` lies above the rate that it promises.

    The one rule of warnings, page and figures. The level truly tested (``attained``) may be lower; a rate between the
    two is no broken promise.
    """
    limit, low = promised(cell), cell.get(f"{name}_low")
    return limit is not None and low is not None and float(low) > limit


def fit_warnings(rows: Sequence[Mapping[str, Any]], about_teachers: Collection[str] = ()) -> list[str]:
    """Return a warning for each setting whose targets, or in mode II whose targets' teachers, are over-fitted.

    In mode II the training set in question is the teacher's.
    """
    names = {"asked": "targets", "teacher": "teachers of the targets"}
    return [
        f"setting {row['setting']}: {names[row['side']]} are over-fitted (train {row['train_accuracy']:.3f}, test "
        f"{row['test_accuracy']:.3f}); what is found does not speak about normally fitted models"
        for row in rows
        if row["group"] == "target" and row["flag"] and (row["side"] == "asked" or row["setting"] in about_teachers)
    ]


def control_warnings(cells: Sequence[Mapping[str, Any]], level: float) -> list[str]:
    """Return a warning for each setting in which attacks call fresh models members more often than β allows.

    A cell counts where the whole interval of its rate lies above β; of many cells some do by luck, and those of one
    setting share models and points.
    """
    lines = []
    for setting in dict.fromkeys(str(cell["setting"]) for cell in cells):
        own = [cell for cell in cells if cell["setting"] == setting]
        tested = [cell for cell in own if promised(cell) is not None and cell.get("fresh_fpr_low") is not None]
        above = [cell for cell in tested if above_promise(cell)]
        if above:
            listed = ", ".join(f"{cell['attack']} on {cell['selection']} {cell['fresh_fpr']:.1%}" for cell in above)
            lines.append(
                f"setting {setting}: fresh models are called members more often than {above[0]['beta']:.1%} in "
                f"{len(above)} of {len(tested)} cells ({listed}; by luck about {len(tested) * (1 - level) / 2:.1f}); "
                "do not quote precision there"
            )
    return lines
