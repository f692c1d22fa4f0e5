"""Random labels for the forget set (RL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from audits.data.tensors import TensorSet
from audits.seeds import Purpose
from audits.training.fit import fit
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.distillation import teacher_logits
from audits.unlearning.mixture import Draws, Labels, RandomLabels
from audits.unlearning.settings import Count, Momentum, NotNegative, Positive, Size
from audits.unlearning.task import Task


@UNLEARNERS.register("random_label")
@dataclass(frozen=True)
class RandomLabel(Unlearner):
    """Minimise CE on the retain set and the wrongly labelled forget set, in mixed batches.

    The wrong labels are drawn once, uniformly from the classes other than the point's own. The public code of SalUn,
    whose RL this is, draws from all classes (``labels``: any) and anew for each epoch (``draws``: epoch).
    """

    learning_rate: Positive = 3e-3
    epochs: Count = 10
    batch_size: Size = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "sgd"
    momentum: Momentum = 0.9
    weight_decay: NotNegative = 5e-4
    schedule: Literal["constant", "cosine"] = "cosine"
    labels: Labels = "wrong"
    draws: Draws = "once"

    def _update(self, task: Task) -> nn.Module:
        found = random_labels(task, self.labels, self.draws)
        keeper = task.beside("labels", found).keeper
        return fit(
            task.student, found.data, self.tuning(),
            seed=task.seed, observers=(found.renew,), keeper=keeper, team=task.team,
        )  # fmt: skip


def random_labels(task: Task, labels: Labels, draws: Draws) -> RandomLabels:
    """Return the retain set and, behind it, the forget set under random labels."""
    classes = teacher_logits(task.original, TensorSet(task.forget.x[:1], task.forget.y[:1])).shape[1]
    return RandomLabels(task.retain, task.forget, classes, task.generator(Purpose.LABELS), labels, draws)
