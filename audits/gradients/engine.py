"""Gradients of many points, in pieces that fit the memory: a ghost of a layer's gradient, or the numbers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from audits.errors import BadInput
from audits.gradients.attribution import Summed, check_sums, powers_of, reads
from audits.gradients.capture import calls_and_sums, whole_rows
from audits.gradients.heard import tell_passed
from audits.gradients.layers import Call, OuterRule, rule_of
from audits.gradients.survey import Survey, Tapped

Purpose = Literal["pairs", "norms", "rows"]
# What is held of a piece: (a, b) of a ghost or (rows,) of numbers, each with the points in the first axis.
Held = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Piece:
    """A parameter, or some units of it, and how it is held: as a ghost or as numbers, ``size`` of them a point.

    ``module`` is the layer that is tapped, None for a parameter read through the whole model; ``own`` is the
    parameter's name in it. ``units`` (low, high): which units of an ``OuterRule``, None where nothing is divided.
    """

    module: str | None
    parameter: str
    own: str
    ghost: bool
    units: tuple[int, int] | None
    size: int


def pieces(survey: Survey, purpose: Purpose, limit: int) -> list[Piece]:
    """Return the pieces of all parameters, in order of computation where layers are tapped.

    ``purpose`` "pairs": inner products of all pairs of points, for which a layer is a ghost iff
    positions² × (inputs + outputs) < inputs × outputs. "norms": each point with itself, where positions × (inputs +
    outputs) decides. "rows": never a ghost. Pieces larger than ``limit`` numbers are divided if their layer can be.
    """
    found: list[Piece] = []
    for layer in survey.tapped:
        for own, parameter in layer.parameters.items():
            found += divided(survey, layer, own, parameter, purpose, limit)
    for parameter in survey.whole:
        size = survey.model.get_parameter(parameter).numel()
        found.append(Piece(None, parameter, "", False, None, size))
    return found


def divided(survey: Survey, layer: Tapped, own: str, parameter: str, purpose: Purpose, limit: int) -> Iterator[Piece]:
    """Yield the pieces of one parameter of a tapped layer."""
    module = survey.model.get_submodule(layer.module)
    rule, numbers = rule_of(module), module.get_parameter(own).numel()
    if not isinstance(rule, OuterRule) or own != "weight":
        yield Piece(layer.module, parameter, own, False, None, numbers)
        return
    held = layer.positions * layer.ghost_numbers
    if purpose != "rows" and held * (layer.positions if purpose == "pairs" else 1) < numbers:
        yield Piece(layer.module, parameter, own, True, None, held)
        return
    units = rule.units(module)
    width = numbers // units
    step = max(1, limit // width)
    for low in range(0, units, step):
        high = min(low + step, units)
        yield Piece(layer.module, parameter, own, False, (low, high), (high - low) * width)


def parts(found: Iterable[Piece], limit: int) -> list[list[Piece]]:
    """Return runs of pieces that hold at most ``limit`` numbers a point together; a larger piece is a run alone."""
    runs: list[list[Piece]] = []
    room = 0
    for piece in found:
        if not runs or piece.size > room:
            runs.append([])
            room = limit
        runs[-1].append(piece)
        room -= piece.size
    return runs


def held(
    survey: Survey,
    part: list[Piece],
    x: torch.Tensor,
    y: torch.Tensor,
    chunk: int,
    *,
    checked: bool = True,
    first: int = 0,
) -> list[Held]:
    """Return what the pieces of ``part`` hold of all points of ``x``, reading ``chunk`` points in one pass.

    ``checked``: see ``passed``; ``first``: the number of the first point, for messages.
    Raises BadInput as ``passed`` does, and for a layer that has other numbers of positions in other passes.
    """
    found: list[Held] = []
    for low in range(0, len(x), chunk):
        high = min(low + chunk, len(x))
        new = passed(survey, part, x[low:high], y[low:high], checked=checked, first=first + low)
        if high - low == len(x):
            return new
        if not found:
            found = [tuple(one.new_empty((len(x), *one.shape[1:])) for one in each) for each in new]
        for piece, whole, each in zip(part, found, new, strict=True):
            for target, one in zip(whole, each, strict=True):
                if one.shape[1:] != target.shape[1:]:
                    raise uneven(piece, target, one, len(x))
                target[low:high] = one
    return found


def uneven(piece: Piece, first: torch.Tensor, later: torch.Tensor, points: int) -> BadInput:
    """Return the error of a ghost whose factors (n, groups, positions, ...) do not fit those of an earlier pass."""
    return BadInput(
        f"model: layer {piece.module} sees {later.shape[2]} positions of a point in one pass and {first.shape[2]} in "
        f"another; allowed: one number for all points; pad them alike, or give chunk={points} or more"
    )


def passed(
    survey: Survey, part: list[Piece], x: torch.Tensor, y: torch.Tensor, *, checked: bool = True, first: int = 0
) -> list[Held]:
    """Return what the pieces hold after one pass of a few points, of which ``first`` is the number of the first one.

    ``checked``: compare a weighted sum of what is read of each layer with autograd's, for these points may use a weight
    elsewhere. It costs the gradient of one sum, twice, and its room, and changes what is returned by rounding at most
    (by no bit where a layer is given vectors or images). A layer that is divided is compared with its first units.
    Raises BadInput for that, and for a layer that does not see every point in each of its calls: whose its rows are is
    not known.
    """
    points, labels = survey.points(x, y)
    tell_passed(len(points))

    def seeds(logits: torch.Tensor) -> torch.Tensor:
        return survey.residual(logits, labels)

    layers = list(dict.fromkeys(piece.module for piece in part if piece.module is not None))
    summed = [piece for piece in part if piece.module is not None and not (piece.units and piece.units[0])]
    names = [piece.parameter for piece in summed] if checked else []
    weight = powers_of(len(points), survey.dtype, survey.device) if checked else None
    calls, sums = calls_and_sums(survey.model, layers, names, points, seeds, weight) if layers else ({}, {})
    for name, each in calls.items():
        check_rows(survey, name, each, len(points))
    whole = [piece.parameter for piece in part if piece.module is None]
    rows = whole_rows(survey.model, whole, points, seeds, batched=survey.batched) if whole else {}
    factors: dict[str, Held] = {}  # a divided layer's are made once
    found: list[Held] = []
    for piece in part:
        if piece.module is None:
            found.append((rows[piece.parameter],))
        else:
            found.append(of_layer(survey, piece, calls[piece.module], factors))
    if weight is not None:
        check_sums(survey.model, (read_of(piece, calls, factors) for piece in summed), weight, sums, first)
    return found


def read_of(piece: Piece, calls: Mapping[str, list[Call]], factors: Mapping[str, Held]) -> Summed:
    """Return what was read of a piece of a tapped layer, for a comparison of sums."""
    assert piece.module is not None
    made = factors.get(piece.module) if piece.own == "weight" else None
    return Summed(piece.module, piece.own, piece.parameter, calls[piece.module], made)


def check_rows(survey: Survey, name: str, calls: list[Call], points: int) -> None:
    """Refuse calls of the layer ``name`` that are not of all ``points`` of the pass, and a pass without any."""
    module = survey.model.get_submodule(name)
    wrong = [tuple(call.input.shape) for call in calls if not reads(module, call, points)]
    if wrong or not calls:
        called = f"called with an input of shape {wrong[0]}" if wrong else "not called"
        raise BadInput(
            f"model: layer {name} is {called} in a pass of {points} points, so that whose its rows are "
            "is not known; allowed: every point in every call; where points are routed, call the layer with all of "
            "them and mask what it returns"
        )


def of_layer(survey: Survey, piece: Piece, calls: list[Call], factors: dict[str, Held]) -> Held:
    """Return what a piece of a tapped layer holds: all calls of a shared layer are added up first."""
    assert piece.module is not None
    module = survey.model.get_submodule(piece.module)
    rule = rule_of(module)
    assert rule is not None
    if not isinstance(rule, OuterRule) or piece.own != "weight":
        return (torch.stack([rule.rows(module, call, piece.own) for call in calls]).sum(0),)
    if piece.module not in factors:
        each = [rule.factors(module, call) for call in calls]
        factors[piece.module] = tuple(torch.cat(one, 2) for one in zip(*each, strict=True))
    a, b = factors[piece.module]
    if piece.ghost:
        return a, b
    assert piece.units is not None
    return (rule.gradient(module, a, b, *piece.units),)
