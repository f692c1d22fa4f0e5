"""Sets in which forget points stand among retain points, so that batches mix both, and random labels for the former."""

from __future__ import annotations

from typing import Literal

import torch

from audits.data.tensors import TensorSet
from audits.training.keeper import Snapshot

Labels = Literal["wrong", "any"]
"""From which classes a random label is drawn: those other than the point's own, or all."""

Draws = Literal["once", "epoch"]
"""How often random labels are drawn: once, or anew for each epoch."""


def mixed(retain: TensorSet, forget: TensorSet) -> TensorSet:
    """Return one set with the retain points first and the forget points behind them."""
    return TensorSet(torch.cat([retain.x, forget.x]), torch.cat([retain.y, forget.y]))


def relabelled(forget: TensorSet, classes: int, generator: torch.Generator, labels: Labels = "wrong") -> TensorSet:
    """Return ``forget`` with labels drawn uniformly from the ``classes`` − 1 wrong ones of each point, or from all."""
    if labels == "any":
        return TensorSet(forget.x, torch.randint(classes, forget.y.shape, generator=generator).to(forget.y.device))
    shift = torch.randint(1, classes, forget.y.shape, generator=generator).to(forget.y.device)
    return TensorSet(forget.x, (forget.y + shift) % classes)


class RandomLabels:
    """The retain set and, behind it, the forget set under random labels: ``data``; ``renew`` draws them anew."""

    def __init__(
        self,
        retain: TensorSet,
        forget: TensorSet,
        classes: int,
        generator: torch.Generator,
        labels: Labels,
        draws: Draws,
    ) -> None:
        self.forget, self.classes, self.generator, self.labels, self.draws = forget, classes, generator, labels, draws
        self.data = mixed(retain, relabelled(forget, classes, generator, labels))

    def renew(self, _: object = None) -> None:
        """Draw the labels of the next epoch, if each has its own; fits as an observer of a training."""
        if self.draws == "epoch":
            own = relabelled(self.forget, self.classes, self.generator, self.labels)
            self.data.y[-len(self.forget) :] = own.y

    def snapshot(self) -> Snapshot:
        """Return the labels of this epoch, and where the generator of those to come stands."""
        return Snapshot({"y": self.data.y[-len(self.forget) :], "generator": self.generator.get_state()})

    def resume(self, snapshot: Snapshot) -> None:
        """Go back to the labels of ``snapshot``."""
        self.data.y[-len(self.forget) :] = snapshot.tensors["y"].to(self.data.y.device)
        self.generator.set_state(snapshot.tensors["generator"])
