"""The hardness of points for models that did not train on them: a control at about the price of watching a training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import nn

from audits.arrays import Floats
from audits.data.tensors import TensorSet
from audits.data.twins import draw_twins
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed
from audits.training.fit import train_model
from audits.training.keeper import NEVER, Phases
from audits.training.recipe import Recipe
from audits.training.team import ALONE, Team
from audits.uniqueness.scores import losses


def held_out_losses(
    build: Callable[[int], nn.Module],
    data: TensorSet,
    recipe: Recipe,
    models: int,
    seed: int,
    keepers: Phases | None = None,
    team: Team = ALONE,
) -> Floats:
    """Return each point's mean cross-entropy (n,) float64, in nats, under the models that did not train on it.

    ``models``: an even number of further models, in twins of the n points of ``data`` (n even): each trains on half of
    them by ``recipe``, so that each point is held out by half of the models. They take half as many steps, and need
    nothing that the owner of the points does not have. ``keepers``: those of the trainings of the job in hand;
    ``team``: as in ``fit``. Raises BadInput for other numbers, and as ``train_model`` does.
    """
    if models < 2 or models % 2:
        raise BadInput(f"models is {models}; allowed: an even number, 2 or more, since they come in twins")
    total, keepers = np.zeros(len(data)), keepers or Phases(NEVER)
    for pair in range(models // 2):
        twins = draw_twins(len(data), derive_seed(seed, Purpose.HELD_OUT), pair)
        for twin, (half, own) in enumerate(zip(twins.half, twins.seeds, strict=True)):
            rows = np.flatnonzero(half)
            keeper = keepers.of(f"held out {pair}.{twin}")
            model = train_model(build, TensorSet(data.x[rows], data.y[rows]), recipe, own, keeper, team)
            others = np.flatnonzero(~half)
            total[others] += losses(model, TensorSet(data.x[others], data.y[others]))
    return total / (models // 2)
