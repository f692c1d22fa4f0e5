"""The kind ``gnq``, as the engine is handed it: what does a model disclose about each point?"""

from __future__ import annotations

from audits.gnq.attacks import POOL_ATTACKS
from audits.uniqueness.rankings import RANKINGS
from orchestrator.engine.kind import Kind, Stage
from orchestrator.engine.run.scores import joined_scores
from orchestrator.gnq.checks import check_data, checked
from orchestrator.gnq.cost import GnqProbe, queries
from orchestrator.gnq.headline import HEADLINE
from orchestrator.gnq.jobs import GnqJobs
from orchestrator.gnq.judged import SCORES
from orchestrator.gnq.published import published
from orchestrator.gnq.result.document import summed_up
from orchestrator.gnq.result.metrics import compared, comparison, metrics
from orchestrator.gnq.selection import SELECTION
from orchestrator.gnq.stages.defending import defend
from orchestrator.gnq.stages.inverting import invert
from orchestrator.gnq.stages.looking import look
from orchestrator.gnq.stages.matching import match
from orchestrator.gnq.stages.scoring import score
from orchestrator.gnq.stages.training import train
from orchestrator.report.result import main_setting_of

STAGES = (
    Stage("train", train, "model"),
    Stage("look", look, "measurement"),
    Stage("defend", defend, "model"),
    Stage("invert", invert, "evidence"),
    Stage("match", match, "evidence"),
    Stage("score", score, "scores"),
)


KIND = Kind(
    place="orchestrator.gnq.kind:KIND",
    name="gnq",
    question="Gradient uniqueness of every training point (arXiv 2510.10902), removal against DP-SGD, in twins.",
    default_plan="gnq-fashion14",
    check=checked,
    fits=check_data,
    design=GnqJobs,
    stages=STAGES,
    probe=GnqProbe,
    queries=queries,
    scores=joined_scores,
    summarise=summed_up,
    comparison=comparison,
    compared=compared,
    metrics=metrics,
    main_setting=main_setting_of,
    headline=HEADLINE,
    registries={"attacks": POOL_ATTACKS, "rankings": RANKINGS},
    page="orchestrator.gnq.page.page:PAGE",
    judged=SCORES,
    selection=SELECTION,
    published=published,
)
