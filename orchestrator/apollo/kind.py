"""The kind ``apollo``, as the engine is handed it: which points were unlearned?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from audits.apollo.attacks.base import ATTACKS
from audits.statistics.summary import cells, per_target_auc
from audits.unlearning.base import UNLEARNERS
from orchestrator.apollo import tuning
from orchestrator.apollo.checks import check_data, checked
from orchestrator.apollo.cost import ApolloProbe, label_queries
from orchestrator.apollo.headline import HEADLINE
from orchestrator.apollo.jobs import ApolloJobs
from orchestrator.apollo.judged import SCORES
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.apollo.published import published
from orchestrator.apollo.result.document import summed_up, utility_rows
from orchestrator.apollo.result.front import ACCURACY
from orchestrator.apollo.result.metrics import metrics
from orchestrator.apollo.score_table import pooled, whole_table
from orchestrator.apollo.selection import SELECTION
from orchestrator.apollo.stages.disclosure import disclosure
from orchestrator.apollo.stages.exposing import expose
from orchestrator.apollo.stages.given import given
from orchestrator.apollo.stages.own_start import own_start
from orchestrator.apollo.stages.radii import radii
from orchestrator.apollo.stages.ranking import rank
from orchestrator.apollo.stages.rehearsing import appraise, rehearse
from orchestrator.apollo.stages.scoring import score
from orchestrator.apollo.stages.searching import search, trace
from orchestrator.apollo.stages.training import train
from orchestrator.apollo.stages.unlearning import unlearn
from orchestrator.apollo.stages.utility import utility
from orchestrator.engine.kind import Kind, Stage, Tuning
from orchestrator.engine.run.attempts import FailedAttack, failed_attacks
from orchestrator.engine.run.scores import stored_scores
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.report.result import main_setting_of

if TYPE_CHECKING:
    import pyarrow as pa

STAGES = (
    Stage("given", given, "given"),
    Stage("train", train, "model"),
    Stage("rank", rank, "evidence"),
    Stage("expose", expose, "evidence"),
    Stage("unlearn", unlearn, "model"),
    Stage("own_start", own_start, "model"),
    Stage("utility", utility, "measurement"),
    Stage("trace", trace, "evidence"),
    Stage("search", search, "evidence"),
    Stage("score", score, "scores"),
    Stage("radii", radii, "evidence"),
    Stage("disclosure", disclosure, "evidence"),
    Stage("rehearse", rehearse, "evidence"),
    Stage("appraise", appraise, "evidence"),
)


def scores(settings: Sequence[Setting], store: Store, together: bool) -> pa.Table:
    """Return the scores of all settings; ``together``: also as if they were one experiment."""
    failed = failed_attacks(settings, store)
    parts = [judged_alike(name, table, failed) for name, table in stored_scores(settings, store)]
    return whole_table(pooled(parts) + parts if together else parts)


def judged_alike(setting: str, table: pa.Table, failed: Sequence[FailedAttack]) -> tuple[str, pa.Table]:
    """Return a shadow set's scores without attacks that failed on another one: a row is about all targets or none."""
    import pyarrow.compute as pc

    for each in failed:
        if each.setting == setting:
            lost = pc.and_(pc.equal(table["unlearner"], each.label), pc.equal(table["attack"], each.attack))
            table = table.filter(pc.invert(lost))
    return setting, table


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return the mean AUC over targets of each unlearning method × attack, and the mean test accuracy of each method.

    Accuracies are of the targets that are measured among the setting's jobs.
    """
    table = scores([setting], store, False)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    areas = {(cell.unlearner, cell.attack): per_target_auc(cell) for cell in cells(columns)}
    found = {f"{method}.{attack}.auc": fmean(each.values()) for (method, attack), each in areas.items()}
    accuracies: dict[str, list[float]] = {}
    for row in utility_rows([setting], store):
        accuracies.setdefault(f"{row.unlearner}{ACCURACY}", []).append(row.test_accuracy)
    return found | {name: fmean(each) for name, each in accuracies.items()}


def compared(plan: ApolloPlan) -> list[str]:
    """Return the names of the numbers that ``comparison`` returns of a plan."""
    areas = [f"{entry.label}.{attack}.auc" for entry in plan.unlearning for attack in plan.audit.attacks]
    return areas + [f"{entry.label}{ACCURACY}" for entry in plan.unlearning]


def stand_ins(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return what nulls of a plan stand for: a search uses all shadows unless it is told how many."""
    return {"audit.search.shadows": plan.get("split.shadows")}


KIND = Kind(
    place="orchestrator.apollo.kind:KIND",
    name="apollo",
    question="Label-only attack on unlearned models (arXiv 2506.09923), online and offline, with controls.",
    default_plan="apollo-fashion14",
    check=checked,
    fits=check_data,
    design=ApolloJobs,
    stages=STAGES,
    probe=ApolloProbe,
    queries=label_queries,
    scores=scores,
    summarise=summed_up,
    comparison=comparison,
    compared=compared,
    metrics=metrics,
    main_setting=main_setting_of,
    headline=HEADLINE,
    page="orchestrator.apollo.page.page:PAGE",
    judged=SCORES,
    registries={"attacks": ATTACKS, "unlearners": UNLEARNERS},
    making=("to train or unlearn", "training and unlearning"),
    tuning=Tuning(
        jobs=tuning.of_targets,
        shared=tuning.is_shared,
        row=tuning.row,
        table=tuning.tuned,
        write=tuning.write_tuned,
        show=tuning.show_tuned,
    ),
    selection=SELECTION,
    published=published,
    stand_ins=stand_ins,
)
