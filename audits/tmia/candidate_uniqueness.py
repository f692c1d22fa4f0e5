"""Gradient uniqueness of candidates beside a reference model's training points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from audits.data.tensors import TensorSet
from audits.gradients.gram import CHUNK, gram
from audits.gradients.validate import made_auditable
from audits.training.loop import logits
from audits.uniqueness.newcomers import newcomers_uniqueness


@dataclass(frozen=True)
class CandidateUniqueness:
    """Scores for the selector ``gnq``: by the first ``models`` reference models, of the first ``samples`` samples."""

    models: int = 5
    samples: int = 1000
    chunk: int = CHUNK

    def bits(self, model: nn.Module, own: TensorSet, asked: TensorSet, *, true_class: bool) -> NDArray[np.float64]:
        """Return ½·log2(1 + GNQ) (N,) float64 of the N points ``asked`` beside ``own``, which ``model`` trained on.

        Gradients of the loss of the points' classes; unless ``true_class``, of the class that the model says of those
        asked. λ is that of ``newcomers_uniqueness``. Holds the Gram matrix of both sets, 8 (n + N)² bytes.
        """
        net = made_auditable(model)
        x, y = asked.all()
        if not true_class:
            y = logits(net, x).argmax(1)
        known, classes = own.all()
        K = gram(net, torch.cat([known, x]), torch.cat([classes, y]), chunk=self.chunk)
        found: NDArray[np.float64] = np.log2(1 + newcomers_uniqueness(K, len(own))) / 2
        return found
