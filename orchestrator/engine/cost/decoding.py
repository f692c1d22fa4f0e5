"""The time to decode an image of a data set whose images stay encoded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from audits.data.catalogue import describe
from orchestrator.engine.data import data_of

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan

IMAGES = 64
"""Timed, from all parts of the set; as many before them pay for imports and start-up."""


def image_seconds(plan: BasePlan) -> float:
    """Return the CPU seconds in which an image of the plan's data is decoded, 0 for data in memory or not there."""
    import numpy as np

    facts = describe(plan.data.name, plan.data.root)
    if not (facts.present and facts.encoded):
        return 0.0
    data = data_of(plan.data.name, plan.data.root, plan.data.groups)
    if data.in_memory:
        return 0.0
    rows = np.linspace(0, len(data) - 1, 2 * IMAGES).astype(np.int64)
    data.inputs[rows[::2]]
    begin = time.process_time()  # of all threads that decode
    data.inputs[rows[1::2]]
    return (time.process_time() - begin) / IMAGES
