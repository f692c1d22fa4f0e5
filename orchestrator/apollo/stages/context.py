"""The context in which the stage bodies of ``apollo`` work."""

from __future__ import annotations

from orchestrator.apollo.design import ApolloDesign
from orchestrator.engine.run.worker import WorkerContext

Context = WorkerContext[ApolloDesign]
