"""The kind ``gnq-target``, as the engine is handed it: what does a given model disclose about its training points?"""

from __future__ import annotations

from orchestrator.engine.kind import Kind, Stage
from orchestrator.engine.run.scores import joined_scores
from orchestrator.gnq.given.checks import check_data, checked
from orchestrator.gnq.given.cost import GivenProbe, queries
from orchestrator.gnq.given.headline import HEADLINE
from orchestrator.gnq.given.jobs import GivenJobs
from orchestrator.gnq.given.outlook import before
from orchestrator.gnq.given.plan import KIND as NAME
from orchestrator.gnq.given.result import compared, comparison, metrics, summed_up
from orchestrator.gnq.given.stages.given import bring
from orchestrator.gnq.given.stages.looking import look
from orchestrator.gnq.given.stages.scoring import score
from orchestrator.report.result import main_setting_of

STAGES = (
    Stage("given", bring, "given"),
    Stage("look", look, "measurement"),
    Stage("score", score, "scores"),
)


KIND = Kind(
    place="orchestrator.gnq.given.kind:KIND",
    name=NAME,
    question="Gradient uniqueness of the training points of a model that you give (orch audit gnq --target).",
    default_plan="gnq-target",
    check=checked,
    fits=check_data,
    design=GivenJobs,
    stages=STAGES,
    probe=GivenProbe,
    queries=queries,
    scores=joined_scores,
    summarise=summed_up,
    comparison=comparison,
    compared=compared,
    metrics=metrics,
    main_setting=main_setting_of,
    headline=HEADLINE,
    page="orchestrator.gnq.given.page.page:PAGE",
    making=("to train", "looking"),
    before=before,
)
