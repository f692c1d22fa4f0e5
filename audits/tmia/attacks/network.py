"""The attack network of GMIA and FMIA: one hidden layer that tells members from non-members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from audits.arrays import Bools, Floats
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models.mlp import MLP
from audits.training.fit import train_model
from audits.training.loop import logits
from audits.training.recipe import Recipe

Judge = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Network:
    """The learned part: ``hidden`` ReLU units, softmax of 2, trained with Adam on cross-entropy.

    64 units are the paper's; learning rate and epochs those of its public code, whose batches have 10 rows.
    """

    hidden: int = 64
    epochs: int = 50
    learning_rate: float = 1e-2
    batch_size: int = 64

    def fitted(self, rows: Floats, member: Bools, seed: int) -> Judge:
        """Return the log-odds of "member" (...,) of rows (..., F) by a network trained on ``rows`` (N, F), ``member``.

        Equal seeds give equal networks. Raises ``BadInput`` where members or non-members are missing.
        """
        if len(np.unique(member)) < 2:
            raise BadInput(
                "an attack network learns from members and non-members of shadows; rows of one kind are missing"
            )
        recipe = Recipe(
            optimizer="adam",
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            batch_size=self.batch_size,
            weight_decay=0.0,
        )
        shape = rows.shape[1:]
        data = TensorSet(torch.from_numpy(rows.astype(np.float32)), torch.from_numpy(member.astype(np.int64)))
        architecture = MLP(hidden=(self.hidden,))
        network = train_model(lambda init: architecture.build(shape, 2, init), data, recipe, seed)

        def judge(asked: Floats) -> Floats:
            flat = torch.from_numpy(asked.reshape(-1, *shape).astype(np.float32))
            outside, inside = logits(network, flat).double().unbind(1)
            found: Floats = (inside - outside).numpy().reshape(asked.shape[:-1])
            return found

        return judge
