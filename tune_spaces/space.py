"""The space of a sweep, and how it is searched: what a sweep file says, as values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from audits.errors import BadInput, did_you_mean
from tune_spaces.dimensions import Dimension, text_of

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Asha", "Changes", "Dimension", "Search", "Space"]

Changes = dict[str, Any]
"""Dotted plan fields → values."""

MOST_SETTINGS = 10_000
"""Settings of a grid, and draws of a search."""
REDRAWN = 50
"""Draws for each setting wanted, before a space is held to have no more of them."""
MOST_CORNERS = 64
"""Corners of a space that are checked in all their combinations; of larger spaces one dimension is moved at a time."""


@dataclass(frozen=True)
class Space:
    """Dimensions in the order of the file; those of a condition may stand behind the one that they decide.

    Raises BadInput for a field given twice or inside another one, and for a condition on no other dimension, on a value
    that it never takes, or in a circle.
    """

    dimensions: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        paths = [dimension.path for dimension in self.dimensions]
        if twice := [path for path in dict.fromkeys(paths) if paths.count(path) > 1]:
            raise BadInput(f"space: {twice[0]} is given twice")
        refuse_nested_paths(paths, "space")
        for dimension in self.dimensions:
            self._check_condition(dimension)
        self.in_order()

    def _check_condition(self, dimension: Dimension) -> None:
        others = {other.path: other for other in self.dimensions if other is not dimension}
        for path, wanted in dimension.when.items():
            here = f"{dimension.path}: when: {path}"
            if path not in others:
                raise BadInput(
                    f"{here} is not in the space{did_you_mean(path, others)}; "
                    f"other fields there: {', '.join(others) or 'none'}"
                )
            if not others[path].listed:
                raise BadInput(f"{here} is {others[path]}; a condition is on a field with a list of values")
            for value in wanted:
                if value not in others[path].values:
                    word, words = text_of(value), [text_of(each) for each in others[path].values]
                    raise BadInput(f"{here} is never {word}{did_you_mean(word, words)}; it is {', '.join(words)}")

    def in_order(self) -> tuple[Dimension, ...]:
        """Return the dimensions, each behind those that its condition names; raises BadInput for a circle."""
        placed: dict[str, Dimension] = {}
        left = list(self.dimensions)
        while left:
            ready = next((each for each in left if all(path in placed for path in each.when)), None)
            if ready is None:
                raise BadInput(f"space: the conditions of {', '.join(each.path for each in left)} go in a circle")
            placed[ready.path] = ready
            left.remove(ready)
        return tuple(placed.values())

    def active(self, dimension: Dimension, chosen: Changes) -> bool:
        """Return whether the values ``chosen`` for other dimensions meet the condition of this one."""
        return all(path in chosen and chosen[path] in wanted for path, wanted in dimension.when.items())

    def grid(self) -> list[Changes]:
        """Return every combination of listed values, the last dimension varying fastest; raises BadInput for others."""
        for dimension in self.dimensions:
            if not dimension.listed:
                raise BadInput(
                    f"{dimension.path}: {dimension} has no list of values, as a grid needs; "
                    "list them, or draw with search: random and samples"
                )
        if (count := math.prod(len(each.values) for each in self.dimensions)) > MOST_SETTINGS:
            raise BadInput(
                f"space: a grid of {count} settings; {MOST_SETTINGS} at most, draw some with search: random and samples"
            )
        return list(self._combined({each.path: each.values for each in self.dimensions}))

    def corners(self) -> list[Changes]:
        """Return combinations of the outermost values: what a plan must not refuse if it is to take the whole space."""
        outermost = {each.path: each.corners() for each in self.dimensions}
        if math.prod(map(len, outermost.values())) <= MOST_CORNERS:
            return list(self._combined(outermost))
        first = {path: values[:1] for path, values in outermost.items()}
        found: list[Changes] = []
        for moved in self.dimensions:
            found += self._combined({**first, **self.needed(moved), moved.path: outermost[moved.path]})
        return [each for number, each in enumerate(found) if each not in found[:number]]

    def needed(self, dimension: Dimension) -> dict[str, tuple[Any, ...]]:
        """Return the values of other fields with which ``dimension`` is active: of those of its conditions, too."""
        found = dict(dimension.when)
        for path in dimension.when:
            condition = next(each for each in self.dimensions if each.path == path)
            for other, wanted in self.needed(condition).items():
                found[other] = tuple(value for value in found.get(other, wanted) if value in wanted)
        return found

    def gives(self, changes: Mapping[str, Any]) -> bool:
        """Return whether ``changes`` could be drawn from this space: the active fields, each with a value it takes."""
        active = [each for each in self.dimensions if self.active(each, dict(changes))]
        same = changes.keys() == {each.path for each in active}
        return same and all(each.gives(changes[each.path]) for each in active)

    def _combined(self, values: Mapping[str, tuple[Any, ...]]) -> Iterator[Changes]:
        """Yield each combination of ``values`` once; a field whose condition is not met is left out."""
        order, seen = self.in_order(), set()
        for combination in itertools.product(*(range(len(values[each.path])) for each in order)):
            chosen: Changes = {}
            numbers: list[tuple[str, int]] = []
            for dimension, number in zip(order, combination, strict=True):
                if self.active(dimension, chosen):
                    chosen[dimension.path] = values[dimension.path][number]
                    numbers.append((dimension.path, number))
            if tuple(numbers) not in seen:
                seen.add(tuple(numbers))
                yield self._arranged(chosen)

    def _arranged(self, chosen: Changes) -> Changes:
        """Return ``chosen`` in the order of the dimensions."""
        return {each.path: chosen[each.path] for each in self.dimensions if each.path in chosen}

    def sample(self, generator: np.random.Generator) -> Changes:
        """Return one draw of every active dimension."""
        chosen: Changes = {}
        for dimension in self.in_order():
            if self.active(dimension, chosen):
                chosen[dimension.path] = dimension.draw(generator)
        return self._arranged(chosen)

    def name(self, changes: Changes) -> str:
        """Return the name of the setting with these values, e.g. "epsilon=0.0513, steps=3".

        Fields are called by the last parts of their paths, as few as tell them apart; constants are left out.
        """
        varied = [each.path for each in self.dimensions if each.form != "constant"]
        said = [f"{short_name(path, varied)}={text_of(changes[path])}" for path in varied if path in changes]
        return ", ".join(said) or "base"


def refuse_nested_paths(paths: Sequence[str], place: str) -> None:
    """Raise BadInput where one of the dotted ``paths``, which stand in ``place``, is inside another."""
    for outer, inner in itertools.permutations(paths, 2):
        if inner.startswith(f"{outer}."):
            raise BadInput(
                f"{place}: {inner} is inside {outer}, so that one would replace the other; leave out one of them"
            )


def short_name(path: str, among: list[str]) -> str:
    """Return the last parts of a dotted path, as few as no other path ends with."""
    parts = path.split(".")
    for count in range(1, len(parts)):
        short = parts[-count:]
        if not any(other != path and other.split(".")[-count:] == short for other in among):
            return ".".join(short)
    return path


@dataclass(frozen=True)
class Asha:
    """Asynchronous successive halving: rungs are parts of the targets searched.

    ``grace``: targets of the first rung; ``reduction``: one of so many trials goes on, to so many times the targets.
    """

    grace: int = 1
    reduction: int = 3


@dataclass(frozen=True)
class Search:
    """How a space is searched.

    ``metric``: one number of ``Kind.comparison``, or two for a Pareto front, each with its ``mode``. ``seeds`` of the
    plan at which each configuration is run, () for the plan's own; a trial's value is their mean. ``seconds``: time
    budget; ``seed``: of the draws and of the searcher.
    """

    space: Space
    algorithm: Literal["grid", "random", "optuna"]
    samples: int | None = None
    scheduler: Asha | None = None
    metric: tuple[str, ...] = ()
    mode: tuple[Literal["min", "max"], ...] = ()
    seeds: tuple[int, ...] = ()
    seconds: float | None = None
    at_a_time: int | None = None
    seed: int = 0

    @property
    def adaptive(self) -> bool:
        """Whether what is run next depends on what was found: then settings are not known beforehand."""
        return self.algorithm == "optuna" or self.scheduler is not None

    def configurations(self) -> list[Changes]:
        """Return what is run where that is known beforehand: the grid, or ``samples`` different draws from ``seed``.

        For Optuna, of which it is not known, as many random draws stand in. Raises BadInput for a space that has fewer.
        """
        import numpy as np

        if self.algorithm == "grid":
            return self.space.grid()
        generator, found = np.random.default_rng(self.seed), list[Changes]()
        wanted = self.samples or 0
        for _ in range(REDRAWN * wanted):
            drawn = self.space.sample(generator)
            if drawn not in found:
                found.append(drawn)
            if len(found) == wanted:
                return found
        raise BadInput(
            f"samples: {wanted} different ones are wanted, but {REDRAWN * wanted} draws gave {len(found)}; "
            "lower samples, or use search: grid"
        )
