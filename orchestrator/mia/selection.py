"""Settings of a membership attack, chosen on pools that the audit leaves over (``orch tune mia``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, cast

import numpy as np

from audits.mia.attacks import MIA_ATTACKS
from audits.statistics.roc import roc, tpr_at_fpr
from audits.statistics.summary import cells, per_target_auc
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Selection
from orchestrator.engine.run.scores import joined_scores
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.mia.jobs import MiaJobs
from orchestrator.mia.plan import MiaPlan
from orchestrator.mia.result.areas import judged_points

if TYPE_CHECKING:
    import pyarrow as pa

    from audits.statistics.summary import Cell


def places(plan: MiaPlan) -> dict[str, tuple[str, float | None]]:
    """Return metric → attack, and the false-positive rate at which its true-positive rate is told; None: its AUC."""
    found: dict[str, tuple[str, float | None]] = {}
    for attack in plan.audit.attacks:
        found[f"{attack}.auc"] = attack, None
        found |= {f"{attack}.{rate:g}.roc_tpr": (attack, rate) for rate in plan.audit.fpr}
    return found


def metrics(plan: MiaPlan) -> Sequence[str]:
    """Return AUC, and TPR at each rate of the plan, of every attack."""
    return tuple(places(plan))


def refusal(plan: MiaPlan, metric: str) -> str:
    """Return why nothing can be chosen by ``metric``, or ""."""
    if plan.target is not None:
        return "target is given, and one model tells no gain; tune on targets of the plan's own (leave target out)"
    attack = MIA_ATTACKS[places(plan)[metric][0]]
    return f"{attack.name} is told the truth and is not an attack" if attack.access == "oracle" else ""


def unscored(plan: MiaPlan, metric: str) -> str:
    """Return "": any setting can be rehearsed, if there are points for it."""
    return ""


def rehearsed(plan: MiaPlan, metric: str) -> MiaPlan:
    """Return the plan with the one attack that is rehearsed."""
    return plan.changed({"audit.attacks": [places(plan)[metric][0]]})


def jobs(design: MiaJobs, metric: str) -> Sequence[Job]:
    """Return the jobs of the rehearsal: all that its design has."""
    return design.jobs()


def values(setting: Setting, store: Store, metric: str) -> Mapping[int, float]:
    """Return pool of the rehearsal → its value."""
    return on_targets(setting, joined_scores([setting], store), metric)


def on_targets(setting: Setting, scores: pa.Table, metric: str) -> Mapping[int, float]:
    """Return pool → mean over its two targets, nothing for an attack that failed."""
    attack, rate = places(cast(MiaPlan, setting.plan))[metric]
    columns = {name: scores[name].to_numpy(zero_copy_only=False) for name in scores.column_names}
    wanted = (columns["setting"] == setting.name) & (columns["attack"] == attack)
    if not wanted.any():
        return {}
    (cell,) = cells(judged_points({name: column[wanted] for name, column in columns.items()}))
    found = per_target_auc(cell) if rate is None else per_target_tpr(cell, rate)
    pools: dict[int, list[float]] = {}
    for target, value in found.items():
        pools.setdefault(target // 2, []).append(value)
    return {pool: fmean(own) for pool, own in pools.items()}


def per_target_tpr(cell: Cell, rate: float) -> dict[int, float]:
    """Return the true-positive rate of each target where so many of its own non-members are called."""
    found = {}
    for target in np.unique(cell.target):
        own = cell.target == target
        found[int(target)] = float(tpr_at_fpr(roc(cell.scores[own], cell.member[own]), rate))
    return found


SELECTION = Selection(
    metrics=metrics,
    refusal=refusal,
    unscored=unscored,
    fields=("audit.hop_skip_jump", "split.shadows", "split.strangers", "shadow_model", "shadow_recipe"),
    jobs=jobs,
    values=values,
    on_targets=on_targets,
    unit="pool",
    over="pool",
    players="targets of pools that the audit leaves over",
    apart="a rehearsal has other pools",
    rehearsed=rehearsed,
    kind="orchestrator.mia.rehearsal:REHEARSAL",
)
