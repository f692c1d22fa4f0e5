"""The section ``target`` of a plan: a model that somebody else has trained, and the points that it was trained on."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator

from audits.errors import BadInput
from orchestrator.engine.plan.errors import shown
from orchestrator.engine.plan.sections import Section


def checked_weights(value: Any) -> str | tuple[str, ...]:
    """Return ``value`` if it names a file, or several."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) and one for one in value):
        return tuple(value)
    raise BadInput(
        f"target.weights is {shown(value)}; allowed: a file, or a list of files: checkpoints of one training"
    )


def written_weights(value: Any) -> Any:
    """Return weights as a plan writes them."""
    return list(value) if isinstance(value, tuple) else value


Weights = Annotated[Any, PlainValidator(checked_weights), PlainSerializer(written_weights)]
"""A file, or a tuple of several."""


class Target(Section):
    """A given model: it is never trained here.

    ``weights``: a state dict (.safetensors, .pt, .pth) of the architecture in the section ``model``, or several, the
    checkpoints of one training in their order. ``members``: which points of the data set it was trained on, a rule
    (all, even, odd, START:STOP) or a file of ids (.txt, .csv, .npy). ``steps``: optimiser steps taken before each
    checkpoint, for sums over steps; without it each checkpoint counts once.
    """

    weights: Weights
    members: Annotated[str, Field(min_length=1)]
    steps: tuple[Annotated[int, Field(ge=0)], ...] | None = None

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The files of the checkpoints, in their order; the last one is the model."""
        return (self.weights,) if isinstance(self.weights, str) else tuple(self.weights)
