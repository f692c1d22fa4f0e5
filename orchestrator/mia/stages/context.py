"""The context in which the stage bodies of ``mia`` work."""

from __future__ import annotations

from orchestrator.engine.run.worker import WorkerContext
from orchestrator.mia.design import MiaDesign

Context = WorkerContext[MiaDesign]
