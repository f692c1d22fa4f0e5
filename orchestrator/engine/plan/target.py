"""The section ``target`` of a plan: a model that somebody else has trained, and the points that it was trained on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from orchestrator.engine.plan.sections import Section

Text = Annotated[str, Field(min_length=1)]


class Target(Section):
    """A given model: it is never trained here.

    ``weights``: a state dict (.safetensors, .pt, .pth) of the architecture in the section ``model``, or several, the
    checkpoints of one training in their order. ``members``: which points of the data set it was trained on, a rule
    (all, even, odd, START:STOP) or a file of ids (.txt, .csv, .npy). ``steps``: optimiser steps taken before each
    checkpoint, for sums over steps; without it each checkpoint counts once.
    """

    weights: Text | Annotated[tuple[Text, ...], Field(min_length=1)]
    members: Text
    steps: tuple[Annotated[int, Field(ge=0)], ...] | None = None

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The files of the checkpoints, in their order; the last one is the model."""
        return (self.weights,) if isinstance(self.weights, str) else self.weights
