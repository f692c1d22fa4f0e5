"""The toy kind, as the engine is handed it."""

from __future__ import annotations

from pathlib import Path

from orchestrator.engine.kind import Kind, ScoresTable, Stage
from orchestrator.engine.run.scores import joined_scores
from orchestrator.report.result import main_setting_of
from tests.orchestrator.toy.checks import check_data, checked
from tests.orchestrator.toy.cost import ToyProbe, queries
from tests.orchestrator.toy.design import ToyJobs
from tests.orchestrator.toy.headline import HEADLINE
from tests.orchestrator.toy.result import comparison, judged, metrics, summed_up
from tests.orchestrator.toy.stages.scoring import score
from tests.orchestrator.toy.stages.training import train

KIND = Kind(
    place="tests.orchestrator.toy.kind:KIND",
    name="toy",
    question="Are losses lower at the points that a model trained on?",
    default_plan=str(Path(__file__).with_name("toy.yaml")),
    check=checked,
    fits=check_data,
    design=ToyJobs,
    stages=(Stage("train", train, "model"), Stage("score", score, "scores")),
    probe=ToyProbe,
    queries=queries,
    scores=joined_scores,
    summarise=summed_up,
    comparison=comparison,
    metrics=metrics,
    main_setting=main_setting_of,
    headline=HEADLINE,
    page="tests.orchestrator.toy.page:PAGE",
    judged=ScoresTable(frozenset({"setting", "attack", "target", "point_id", "member", "score"}), judged),
)
