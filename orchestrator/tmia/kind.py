"""The kind ``tmia``, as the engine is handed it: which points was a model trained on?"""

from __future__ import annotations

from audits.tmia.attacks import ATTACKS
from audits.tmia.selectors import SELECTORS
from orchestrator.engine.kind import Kind, Stage
from orchestrator.engine.run.scores import joined_scores
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.report.result import main_setting_of
from orchestrator.tmia.checks import check_data, checked
from orchestrator.tmia.cost import TmiaProbe, label_queries
from orchestrator.tmia.headline import HEADLINE
from orchestrator.tmia.jobs import TmiaJobs
from orchestrator.tmia.judged import SCORES
from orchestrator.tmia.plan import TmiaPlan
from orchestrator.tmia.published import published
from orchestrator.tmia.result.document import details, summed_up
from orchestrator.tmia.result.metrics import metrics
from orchestrator.tmia.selection import SELECTION
from orchestrator.tmia.stages.given import bring
from orchestrator.tmia.stages.looking import look
from orchestrator.tmia.stages.querying import query
from orchestrator.tmia.stages.scoring import score
from orchestrator.tmia.stages.selecting import select
from orchestrator.tmia.stages.training import train

STAGES = (
    Stage("given", bring, "given"),
    Stage("train", train, "model"),
    Stage("select", select, "evidence"),
    Stage("query", query, "evidence"),
    Stage("look", look, "evidence"),
    Stage("score", score, "scores"),
)


COMPARED = ("precision", "coverage")


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return precision and coverage of each selection × attack, where they are defined."""
    return {
        f"{cell['selection']}.{cell['attack']}.{name}": float(cell[name])
        for cell in details(setting, store)["cells"]
        for name in COMPARED
        if cell[name] is not None
    }


def compared(plan: TmiaPlan) -> list[str]:
    """Return the names that numbers of ``comparison`` can have; some are not defined, as is precision of no call."""
    selections = ("all", *plan.audit.selectors)
    return [f"{one}.{attack}.{name}" for one in selections for attack in plan.audit.attacks for name in COMPARED]


KIND = Kind(
    place="orchestrator.tmia.kind:KIND",
    name="tmia",
    question="Membership inference against transfer learning from labels alone (Chen et al. 2021), three modes.",
    default_plan="tmia-fashion14",
    check=checked,
    fits=check_data,
    design=TmiaJobs,
    stages=STAGES,
    probe=TmiaProbe,
    queries=label_queries,
    scores=joined_scores,
    summarise=summed_up,
    comparison=comparison,
    compared=compared,
    metrics=metrics,
    main_setting=main_setting_of,
    headline=HEADLINE,
    registries={"attacks": ATTACKS, "selectors": SELECTORS},
    page="orchestrator.tmia.page.page:PAGE",
    judged=SCORES,
    selection=SELECTION,
    published=published,
)
