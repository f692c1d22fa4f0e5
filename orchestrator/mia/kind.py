"""The kind ``mia``, as the engine is handed it: which points was an ordinary model trained on?"""

from __future__ import annotations

from audits.mia.attacks import MIA_ATTACKS
from orchestrator.engine.kind import Kind, Stage
from orchestrator.engine.run.scores import joined_scores
from orchestrator.mia.checks import check_data, checked
from orchestrator.mia.cost import MiaProbe, queries
from orchestrator.mia.headline import HEADLINE
from orchestrator.mia.jobs import MiaJobs
from orchestrator.mia.judged import SCORES
from orchestrator.mia.published import published
from orchestrator.mia.result.document import summed_up
from orchestrator.mia.result.metrics import compared, comparison, metrics
from orchestrator.mia.selection import SELECTION
from orchestrator.mia.stages.asking import ask
from orchestrator.mia.stages.given import bring
from orchestrator.mia.stages.scoring import score
from orchestrator.mia.stages.training import train
from orchestrator.mia.stages.walking import walk
from orchestrator.report.result import main_setting_of

STAGES = (
    Stage("given", bring, "given"),
    Stage("train", train, "model"),
    Stage("ask", ask, "evidence"),
    Stage("walk", walk, "evidence"),
    Stage("score", score, "scores"),
)


KIND = Kind(
    place="orchestrator.mia.kind:KIND",
    name="mia",
    question="Membership of an ordinary model: who was it trained on? LiRA, RMIA, QMIA and others, at promised rates.",
    default_plan="mia-fashion14",
    check=checked,
    fits=check_data,
    design=MiaJobs,
    stages=STAGES,
    probe=MiaProbe,
    queries=queries,
    scores=joined_scores,
    summarise=summed_up,
    comparison=comparison,
    compared=compared,
    metrics=metrics,
    main_setting=main_setting_of,
    headline=HEADLINE,
    registries={"attacks": MIA_ATTACKS},
    page="orchestrator.mia.page.page:PAGE",
    judged=SCORES,
    selection=SELECTION,
    published=published,
)
