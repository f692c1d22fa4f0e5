"""``toy2d``: points of the plane in four quadrant wedges, the two-dimensional example of Apollo (its Fig. 3)."""

from __future__ import annotations

import numpy as np

from audits.data.dataset import Dataset, Description
from audits.data.source import CATALOGUE, Request, Source

CLASSES = ("upper right", "upper left", "lower left", "lower right")
POINTS = 500
RADIUS = (0.1, 1.0)


def make(points: int = POINTS, seed: int = 0, name: str = "toy2d") -> Dataset:
    """Return ``points`` points, float32 (N, 2) in [-1, 1]: quadrants in turn, angle uniform in the quadrant, radius
    uniform in ``RADIUS``; the label is the quadrant, counted from 0 against the clock. Coordinates have no allowed
    range (``value_range`` is None): an attack must not clip them to [0, 1].
    """
    random = np.random.default_rng(seed)
    labels = np.arange(points, dtype=np.int64) % len(CLASSES)
    angle = (labels + random.uniform(0, 1, points)) * (np.pi / 2)
    radius = random.uniform(*RADIUS, points)
    inputs = (radius * np.stack([np.cos(angle), np.sin(angle)])).T.astype(np.float32)
    return Dataset(name, np.ascontiguousarray(inputs), labels, CLASSES, None)


def describe(request: Request) -> Description:
    """Describe the set; it is drawn when it is read."""
    request.allow("points", "seed")
    points = request.whole_number("points", POINTS, least=len(CLASSES))
    return Description(
        request.name, points, (2,), CLASSES, None, ["drawn when read"], True, "none needed", "it is drawn when read"
    )


def load(request: Request) -> Dataset:
    """Draw the set."""
    points = describe(request).points
    return make(points, request.whole_number("seed", 0), request.name)


CATALOGUE.register("toy2d")(Source("toy2d?points=N&seed=S", "500 points of the plane in four wedges", describe, load))
