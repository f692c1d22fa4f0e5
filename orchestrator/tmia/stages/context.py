"""The context in which the stage bodies of ``tmia`` work."""

from __future__ import annotations

from orchestrator.engine.run.worker import WorkerContext
from orchestrator.tmia.design import TmiaDesign

Context = WorkerContext[TmiaDesign]
