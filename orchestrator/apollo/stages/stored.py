"""Models of the partition: how one is built, and how it is read from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator.apollo.stages.context import Context

if TYPE_CHECKING:
    from torch import nn

    from audits.apollo.design.partition import Member
    from orchestrator.apollo.plan import UnlearningMethod
    from orchestrator.engine.jobs.job import Reference


def builder_of(context: Context, member: Member) -> Callable[[int], nn.Module]:
    """Return what builds a fresh model of a member's architecture from a seed."""
    data = context.design.data
    architecture = context.design.model_of(member).architecture()
    return lambda seed: architecture.build(data.shape, len(data.classes), seed)


def stored_model(context: Context, reference: Reference, member: Member) -> nn.Module:
    """Return the stored model of ``member``, in eval mode and frozen."""
    return context.stored(reference, lambda: builder_of(context, member)(0))


def original_models(context: Context, members: Sequence[Member]) -> list[nn.Module]:
    """Return the trained models of ``members``."""
    return [stored_model(context, context.design.trained(member), member) for member in members]


def unlearned_models(context: Context, members: Sequence[Member], entry: UnlearningMethod) -> list[nn.Module]:
    """Return the models of ``members`` after unlearning by ``entry``."""
    return [stored_model(context, context.design.unlearned(member, entry), member) for member in members]
