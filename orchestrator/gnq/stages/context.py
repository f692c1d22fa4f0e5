"""The context in which the stage bodies of ``gnq`` work."""

from __future__ import annotations

from orchestrator.engine.run.worker import WorkerContext
from orchestrator.gnq.design import GnqDesign

Context = WorkerContext[GnqDesign]
