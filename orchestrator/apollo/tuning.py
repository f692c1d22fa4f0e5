"""A sweep of utilities: which settings of each unlearning method come closest to retraining, in accuracy."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from audits.errors import BadInput
from audits.writing import write_whole
from orchestrator.apollo.plan import CONTROLS
from orchestrator.apollo.result.document import flag
from orchestrator.engine.jobs.job import Job, of_stage
from orchestrator.engine.media import markdown, terminal
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.run.result_head import versions

if TYPE_CHECKING:
    from orchestrator.apollo.plan import UnlearningMethod
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.run.console import Terminal
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

SCHEMA = "orch.presets/1"
ACCURACIES = ("retain_accuracy", "forget_accuracy", "test_accuracy")
PRESETS = "presets.yaml"


def of_targets(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that make and measure targets: no shadow, no attack. Raises BadInput for a given target."""
    if of_stage(jobs, "given"):
        raise BadInput(
            "target is given, and nothing is unlearned by the plan's methods; leave target out of a tuning sweep"
        )
    targets = {job.member for job in of_stage(jobs, "utility")}
    return [job for job in of_stage(jobs, "train", "unlearn", "utility") if job.member in targets]


def is_shared(job: Job) -> bool:
    """Return whether all settings of a utility sweep read this model: a trained or a retrained one."""
    return job.stage == "train" or (job.stage == "unlearn" and job.document["method"] == "retrain")


def tuned(name: str, settings: Sequence[Setting], store: Store, plan: BasePlan) -> dict[str, Any]:
    """Return the table of all settings and, for each method, the one closest to retraining.

    Distance of a target: mean over retain, forget and test accuracy of |unlearned − retrained|; of a setting: its mean
    over targets, with its standard error.
    """
    rows = [row(setting, store) for setting in settings]
    best: dict[str, dict[str, Any]] = {}
    for found in rows:
        known = best.get(found["method"])
        if not found["flags"] and (known is None or found["distance"] < known["distance"]):
            best[found["method"]] = found
    split = plan.resolved()["split"]
    presets = [
        {
            "data": plan.data.name,
            "model": plan.model.name,
            "forget": split["forget"],
            "method": method,
            "settings": found["settings"],
            "source": f"orch sweep {name}, distance {found['distance']:.4f} over {found['targets']} targets",
        }
        for method, found in best.items()
    ]
    return {
        "schema": SCHEMA,
        "name": name,
        "rows": rows,
        "presets": presets,
        "plan": plan.resolved(),
        "plan_hash": plan.plan_hash,
        "versions": versions(),
    }


def row(setting: Setting, store: Store) -> dict[str, Any]:
    """Return what one setting's method does to its targets, beside retraining."""
    methods: Sequence[UnlearningMethod] = getattr(setting.plan, "unlearning", ())
    (entry,) = (entry for entry in methods if entry.method not in CONTROLS)
    control = next(each.label for each in methods if each.method == "retrain")
    own, retrained = (measured(setting, store, label) for label in (entry.label, control))
    gaps = [
        statistics.fmean(abs(found[name] - retrained[target][name]) for name in ACCURACIES)
        for target, found in own.items()
    ]
    error = statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
    means = {name: statistics.fmean(found[name] for found in own.values()) for name in (*ACCURACIES, "seconds")}
    flags = sorted({text for found in own.values() if (text := flag(found, entry.method))})
    return {
        "setting": setting.name,
        "method": entry.method,
        "settings": entry.settings,
        "distance": statistics.fmean(gaps),
        "distance_error": None if math.isnan(error) else error,
        "targets": len(gaps),
        **means,
        **{f"retrain_{name}": statistics.fmean(found[name] for found in retrained.values()) for name in ACCURACIES},
        "flags": flags,
    }


def measured(setting: Setting, store: Store, label: str) -> dict[str, dict[str, float]]:
    """Return target → measures of the models that the method ``label`` left."""
    return {
        job.member: json.loads(store.get("utility", job.key).read(METRICS))
        for job in setting.of("utility")
        if job.label == label
    }


def write_tuned(out: Path, document: Mapping[str, Any]) -> None:
    """Write result.json, presets.yaml (entries for the presets of a plan) and presets.md (the whole table)."""

    presets = yaml.safe_dump(document["presets"], sort_keys=False, default_flow_style=None, width=120)
    for name, text in (
        ("result.json", json.dumps(document, indent=1)),
        (PRESETS, presets),
        ("presets.md", table_of(document)),
    ):
        write_whole(out / name, text.encode(), private=name == "result.json")


def chosen_settings(document: Mapping[str, Any]) -> set[str]:
    """Return the names of the settings that became presets."""
    best = [(entry["method"], entry["settings"]) for entry in document["presets"]]
    return {found["setting"] for found in document["rows"] if (found["method"], found["settings"]) in best}


def table_of(document: Mapping[str, Any]) -> str:
    """Return the table of all settings as Markdown, the chosen ones marked."""
    chosen = chosen_settings(document)
    first = document["rows"][0]
    lines = [
        "| setting | retain acc. | forget acc. | test acc. | distance to retrain (± s.e.) | seconds | flags |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| retrain | " + " | ".join(f"{first[f'retrain_{name}']:.3f}" for name in ACCURACIES) + " | | | |",
    ]
    for found in document["rows"]:
        mark = " **chosen**" if found["setting"] in chosen else ""
        error = "" if found["distance_error"] is None else f" ± {found['distance_error']:.4f}"
        cells = " | ".join(f"{found[name]:.3f}" for name in ACCURACIES)
        lines.append(
            f"| {markdown(found['setting'])}{mark} | {cells} | {found['distance']:.4f}{error} | "
            f"{found['seconds']:.2f} | {', '.join(found['flags'])} |"
        )
    return "\n".join(lines) + "\n"


def show_tuned(screen: Terminal, document: Mapping[str, Any], out: Path) -> None:
    """Print the chosen settings and where the whole table and the presets lie."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("method", "learning rate", "retain", "forget", "test", "distance to retrain"):
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    first = document["rows"][0]
    table.add_row("retrain", "", *(f"{first[f'retrain_{name}']:.3f}" for name in ACCURACIES), "")
    chosen = chosen_settings(document)
    for found in document["rows"]:
        if found["setting"] in chosen:
            cells = [f"{found[name]:.3f}" for name in ACCURACIES]
            table.add_row(
                Text(terminal(found["method"])),
                f"{found['settings'].get('learning_rate', 0):g}",
                *cells,
                f"{found['distance']:.4f}",
            )
    screen.table(table)
    screen.closing(f"all settings: {out / 'presets.md'}; entries of a preset file: {out / PRESETS}")
