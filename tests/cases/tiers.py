"""Families of tests in two tiers: some members stand for the others, which are marked long."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thinned(family: Iterable[Any], short: Collection[Any]) -> list[Any]:
    """Return the members of a family of arguments; those that are not in ``short`` are marked long.

    A tuple holds the values of several arguments.
    """
    listed = list(family)
    assert short and all(one in listed for one in short), "of others there are no tests"
    return [one if one in short else pytest.param(*values_of(one), marks=pytest.mark.long) for one in listed]


def values_of(member: Any) -> tuple[Any, ...]:
    """Return the values of all arguments."""
    return member if isinstance(member, tuple) else (member,)
