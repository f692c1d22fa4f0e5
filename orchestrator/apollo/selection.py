"""Settings of an attack of Apollo, chosen on shadows that play the target (``orch tune apollo``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence.left_out import block
from audits.apollo.evidence.played import unplayable
from audits.statistics.summary import cells, per_target_auc
from orchestrator.apollo.jobs import ApolloJobs
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.apollo.stages.rehearsing import APPRAISAL
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Selection
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


def places(plan: ApolloPlan) -> dict[str, tuple[str, str]]:
    """Return metric → unlearning method and attack."""
    return {
        f"{entry.label}.{attack}.auc": (entry.label, attack)
        for entry in plan.unlearning
        for attack in plan.audit.attacks
    }


def metrics(plan: ApolloPlan) -> Sequence[str]:
    """Return the AUC of every attack against every method."""
    return tuple(places(plan))


def refusal(plan: ApolloPlan, metric: str) -> str:
    """Return why nothing can be chosen by ``metric``, or ""."""
    if plan.target is not None:
        return "target is given, and one model tells no gain; tune on targets of the plan's own (leave target out)"
    attack = ATTACKS[places(plan)[metric][1]]
    if attack.access == "oracle":
        return f"{attack.name} is told the truth and is not an attack"
    reason = unplayable(attack.reads)
    return f"{attack.name} cannot be rehearsed on shadows: {reason}" if reason else ""


def unscored(plan: ApolloPlan, metric: str) -> str:
    """Return why too few shadows are left for one of them to play the target, or ""."""
    reads = ATTACKS[places(plan)[metric][1]].reads
    shadows = plan.audit.search.shadows or plan.split.shadows
    needed = 4 * max(block(kind, plan.split.candidates.retained > 0) for kind in reads)
    return f"{shadows} shadows are too few for one of them to play the target; {needed} are enough" * (shadows < needed)


def jobs(design: ApolloJobs, metric: str) -> Sequence[Job]:
    """Return the jobs of the rehearsal."""
    return design.rehearsal(*places(design.plan)[metric])


def values(setting: Setting, store: Store, metric: str) -> dict[int, float]:
    """Return shadow set → mean AUC over its players."""
    done = setting.of("appraise")
    found = {job.shadow_set: unpack_arrays(store.get(job.stage, job.key).read(APPRAISAL))["auc"] for job in done}
    return {shadow_set: float(areas.mean()) for shadow_set, areas in found.items()}


def on_targets(setting: Setting, scores: pa.Table, metric: str) -> Mapping[int, float]:
    """Return the AUC of each target, nothing for an attack that failed."""
    columns = {name: scores[name].to_numpy() for name in scores.column_names}
    wanted = columns["setting"] == setting.name
    own = cells({name: column[wanted] for name, column in columns.items()})
    return next((per_target_auc(cell) for cell in own if f"{cell.unlearner}.{cell.attack}.auc" == metric), {})


SELECTION = Selection(
    metrics=metrics,
    refusal=refusal,
    unscored=unscored,
    fields=("audit.search", "audit.population", "audit.queries", "split.shadows", "split.offline_shadows"),
    jobs=jobs,
    values=values,
    on_targets=on_targets,
    unit="shadow set",
    players="shadows that play the target",
    apart="a shadow in the place of a target is judged by fewer others",
)
