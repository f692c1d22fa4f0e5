"""Scenarios of a model that somebody brings: what it was trained on, and which lists come with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
Truth = Literal["members", "some", "nobody"]
"""Of the points that are listed as members: all were trained on, some were, or none was."""

LISTED, UNLISTED, REST = 500, 1500, 4000
"""Points that are listed as members, points that are listed as others, and points that nobody mentions."""


@dataclass
class Points:
    """Images (N, 1, 14, 14) in [0, 1] and labels (N,); ids of those that are listed and of those that were trained on.

    ``members``, ``others``: as they are listed; ``trained``: what the model saw; ``epochs``: how often, as a multiple
    of what the plan says.
    """

    x: Images
    y: Labels
    members: NDArray[np.int64]
    others: NDArray[np.int64]
    trained: NDArray[np.int64]
    epochs: float = 1.0


Change = Callable[[Points, np.random.Generator], None]
Alter = Callable[[Images, Labels, np.random.Generator], tuple[Images, Labels]]


@dataclass(frozen=True)
class Scenario:
    """A ``change`` of honest lists, and what is true of the listed members then; ``about``: in words."""

    about: str
    truth: Truth
    change: Change


def honest(points: Points, rng: np.random.Generator) -> None:
    """Leave all as it is."""


def swapped(points: Points, rng: np.random.Generator) -> None:
    """Exchange the lists: members stand among the others, others among the members."""
    few = rng.permutation(points.others)[:LISTED]
    points.others = np.concatenate([points.members, np.setdiff1d(points.others, few)])
    points.members = few


def shifted_ids(points: Points, rng: np.random.Generator) -> None:
    """List, for each point, the next one, as a list that counts from one does; points lie in random order."""
    following = points.members + 1
    listed = np.setdiff1d(np.where(following < len(points.y), following, 0), [])
    points.members, points.others = listed, np.setdiff1d(np.union1d(points.others, points.members), listed)


def half_wrong(points: Points, rng: np.random.Generator) -> None:
    """Take half of the listed members from points that nobody mentions."""
    points.members = points.members.copy()
    points.members[: LISTED // 2] = unmentioned(points, rng, LISTED // 2)


def quarter_missing(points: Points, rng: np.random.Generator) -> None:
    """List a quarter of the members among the others."""
    gone = rng.permutation(points.members)[: LISTED // 4]
    points.members, points.others = np.setdiff1d(points.members, gone), np.concatenate([points.others, gone])


def three_times_the_epochs(points: Points, rng: np.random.Generator) -> None:
    """Train the model three times as long as the plan says."""
    points.epochs = 3.0


def a_third_of_the_epochs(points: Points, rng: np.random.Generator) -> None:
    """Train the model a third as long as the plan says."""
    points.epochs = 1 / 3


def of_others(alter: Alter) -> Change:
    """Return a change that alters the points that are listed as others."""

    def change(points: Points, rng: np.random.Generator) -> None:
        points.x[points.others], points.y[points.others] = alter(points.x[points.others], points.y[points.others], rng)

    return change


def of_nobody(change: Change) -> Change:
    """Return a change of lists of which nobody was trained on: the model saw as many points that nobody mentions."""

    def untrained(points: Points, rng: np.random.Generator) -> None:
        points.trained = unmentioned(points, rng, len(points.trained))
        change(points, rng)

    return untrained


def unmentioned(points: Points, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Return ids of points that are on no list and were not trained on."""
    named = np.concatenate([points.members, points.others, points.trained])
    return rng.permutation(np.setdiff1d(np.arange(len(points.y)), named))[:count]


def brighter(x: Images, y: Labels, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Add a tenth to every pixel: a difference that a linear rule sees."""
    return np.clip(x + 0.1, 0, 1), y


def by_class(x: Images, y: Labels, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Make images of every other class brighter, the rest darker."""
    factor = np.where(y % 2, 1.25, 0.8).astype(np.float32)
    return np.clip(x * factor[:, None, None, None], 0, 1), y


def flatter(x: Images, y: Labels, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Take 30 % of the contrast away, around each image's own mean."""
    mean = x.mean((1, 2, 3), keepdims=True)
    return (mean + 0.7 * (x - mean)).astype(np.float32), y


def noisier(x: Images, y: Labels, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Add normal noise of standard deviation .08 to every pixel."""
    return np.clip(x + rng.normal(0, 0.08, x.shape), 0, 1).astype(np.float32), y


def blurred(x: Images, y: Labels, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Take the mean of each pixel and its neighbours: another camera."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    height, width = x.shape[2:]
    around = [padded[:, :, row : row + height, column : column + width] for row in range(3) for column in range(3)]
    return np.mean(around, axis=0, dtype=np.float32), y


def mislabelled(x: Images, y: Labels, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Give one label in eight at random."""
    wrong = rng.random(len(y)) < 0.125
    return x, np.where(wrong, rng.integers(0, 10, len(y)), y)


def drifted(x: Images, y: Labels, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Call a third of one class by another's name, as labels do that were given in another year."""
    late = (y == 6) & (rng.random(len(y)) < 1 / 3)
    return x, np.where(late, 0, y)


def near_duplicates(points: Points, rng: np.random.Generator) -> None:
    """Make a third of the others images of members, with a little noise."""
    copies = points.others[: len(points.others) // 3]
    originals = rng.choice(points.members, len(copies))
    noise = rng.normal(0, 0.02, points.x[originals].shape)
    points.x[copies] = np.clip(points.x[originals] + noise, 0, 1)
    points.y[copies] = points.y[originals]


def imbalanced(points: Points, rng: np.random.Generator) -> None:
    """Take others mostly of five classes, from points that nobody mentions."""
    free = unmentioned(points, rng, len(points.y))
    odds = np.where(points.y[free] < 5, 3.0, 1.0)
    points.others = rng.choice(free, len(points.others), replace=False, p=odds / odds.sum())


def shifted(name: str, alter: Alter, about: str) -> dict[str, Scenario]:
    """Return two scenarios in which others are altered: the listed members were trained on, or nobody was."""
    return {
        name: Scenario(about, "members", of_others(alter)),
        f"{name}, nobody": Scenario(f"{about}, and none was trained on", "nobody", of_nobody(of_others(alter))),
    }


SCENARIOS: Mapping[str, Scenario] = {
    "honest": Scenario("the lists are right", "members", honest),
    "swapped": Scenario("the lists are exchanged", "nobody", swapped),
    "shifted ids": Scenario("each id is one too high", "nobody", shifted_ids),
    "half wrong": Scenario("half of the members are others", "some", half_wrong),
    "quarter missing": Scenario("a quarter of the members stands among the others", "members", quarter_missing),
    "longer": Scenario("the model was trained three times as long", "members", three_times_the_epochs),
    "shorter": Scenario("the model was trained a third as long", "members", a_third_of_the_epochs),
    "imbalanced": Scenario("others are mostly of five classes", "members", imbalanced),
    "near duplicates": Scenario("a third of the others are nearly members", "members", near_duplicates),
    "nobody": Scenario("none of the listed was trained on", "nobody", of_nobody(honest)),
    **shifted("brighter", brighter, "others are brighter"),
    **shifted("by class", by_class, "others are brighter or darker by class"),
    **shifted("flatter", flatter, "others have less contrast"),
    **shifted("noisier", noisier, "others are noisier"),
    **shifted("blurred", blurred, "others come from another camera"),
    **shifted("mislabelled", mislabelled, "an eighth of the labels of others is wrong"),
    **shifted("drifted", drifted, "others of one class are partly called by another’s name"),
}


def drawn(x: Images, y: Labels, seed: int) -> Points:
    """Return honest lists of so many points, in random order."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(y))[: LISTED + UNLISTED + REST]
    order = rng.permutation(len(chosen))
    members, others = np.sort(order[:LISTED]), np.sort(order[LISTED : LISTED + UNLISTED])
    return Points(x[chosen].copy(), y[chosen].copy(), members, others, members)
