"""The section ``target`` of a plan: a model that somebody else has trained, and the points that it was trained on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainSerializer, PlainValidator

from audits.errors import BadInput
from audits.targets.rules import is_rule
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


class Checkpoints(Section):
    """A given model, or several checkpoints of its training: it is never trained here.

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


class Target(Section):
    """A given model: it is never trained here. Kinds of audits add what else they need to know about it.

    ``weights``: its file, a state dict (.safetensors, .pt, .pth) of the architecture in the section ``model``.
    ``members``: which points of the data set it was trained on, a rule (all, even, odd, START:STOP) or a file of ids
    (.txt, .csv, .npy). ``non_members``: which points it has not seen, null for all others. ``sha256``: the digest of
    each file, by its name, as a run found it and wrote it down; a file that is not the one of the plan is refused.
    """

    POINTS: ClassVar[tuple[str, ...]] = ("members", "non_members")
    """The fields that name points of the data set."""
    MODELS: ClassVar[tuple[str, ...]] = ("weights",)
    """The fields that name a model."""

    weights: Annotated[str, Field(min_length=1)]
    members: Annotated[str, Field(min_length=1)]
    non_members: Annotated[str, Field(min_length=1)] | None = None
    sha256: dict[str, str] = Field(default_factory=dict)

    def named(self, fields: Iterable[str]) -> dict[str, str]:
        """Return what those of ``fields`` say that say anything."""
        found = {name: getattr(self, name) for name in fields}
        return {name: text for name, text in found.items() if text is not None}

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files, each once."""
        points = (text for text in self.named(self.POINTS).values() if not is_rule(text))
        return tuple(dict.fromkeys([*self.named(self.MODELS).values(), *points]))
