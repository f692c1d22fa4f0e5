"""Evidence in which a shadow plays the target: the answers of a model of which it is known what it unlearned.

An unlearned shadow answered along the walk that the other half of the pool drew just as a target does. Where it plays
the target, it is left out of fits, references and nulls, and so are the shadows that were dealt their candidates
together with it: its complement saw exactly the points that it did not, so that a fit to the complement learns what the
player is *not*. Without them every point is left with as many shadows inside as outside. Of a walk that its own half
drew a shadow may not be asked: only the other one is, in both places of the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.apollo.evidence.base import KINDS
from audits.apollo.evidence.ladder import Positions
from audits.apollo.evidence.left_out import block
from audits.apollo.evidence.logits import Logits
from audits.apollo.evidence.parts import Evidence, Part, Posteriors, Walks
from audits.apollo.evidence.plus import Standings
from audits.apollo.evidence.population import Population
from audits.arrays import Bools
from audits.errors import BadInput

ANSWERS: Mapping[type[Part], str] = {
    Walks: "pseudo",
    Standings: "pseudo",
    Positions: "pseudo",
    Posteriors: "shadow",
    Logits: "shadow",
    Population: "shadow",
}
"""Type of a part → its array of what unlearned shadows answer, which become a target's answers."""

Player = tuple[int, int]
"""Half of the pool, 0 or 1, and index of a shadow in it."""


def unplayable(reads: Sequence[str]) -> str:
    """Return why no shadow can play the target in evidence of the kinds ``reads``, or ""."""
    for kind in reads:
        if KINDS[kind].part not in ANSWERS:
            return f"evidence {kind!r} is walked anew for every model by its own answers"
        if "online" not in KINDS[kind].reads:
            return f"the shadows of evidence {kind!r} never saw a candidate, so that none has anything to be found"
    return ""


def players(found: Evidence, reads: Sequence[str], *, retained: bool = False) -> list[Player]:
    """Return the shadows that can play the target in the evidence of the kinds ``reads``.

    All of both halves; of those of a ladder the half that did not draw it. Raises ``BadInput`` where no shadow of a
    half would be left beside a player.
    """
    if reason := unplayable(reads):
        raise BadInput(f"no shadow can play the target: {reason}")
    per_half = min(found.part(kind).per_half for kind in reads)
    needed = 2 * max(block(kind, retained) for kind in reads)
    if per_half < needed:
        raise BadInput(f"{2 * per_half} shadows are too few for one of them to play the target; give {2 * needed}")
    halves = (1,) if any(isinstance(found.part(kind), Positions) for kind in reads) else (0, 1)
    return [(half, shadow) for half in halves for shadow in range(per_half)]


def played(found: Evidence, reads: Sequence[str], player: Player, *, retained: bool = False) -> Evidence:
    """Return the evidence of the kinds ``reads`` in which ``player`` is the target, of all candidates.

    ``retained``: candidates that were trained on and kept are among them. The truth is the player's own: which
    candidates it unlearned, and which it never saw. What the evidence holds of the true targets is not in it.
    """
    half, shadow = player
    parts: dict[str, Part] = {}
    sides: dict[str, Bools] = {}
    for kind in reads:
        part = found.part(kind)
        kept = np.arange(part.per_half) // block(kind, retained) != shadow // block(kind, retained)
        along = _along_one_walk if 1 in part.shadows.values() else _at_the_point
        arrays, own = along(part, half, shadow, kept)
        parts[kind] = type(part)(**arrays)
        sides = sides or own
    return Evidence(parts, sides["inside"], sides["outside"])


def _along_one_walk(part: Part, half: int, shadow: int, kept: Bools) -> tuple[dict[str, Any], dict[str, Bools]]:
    """Return the arrays of a part of two walks, the one that the other half drew in both places, and the truth."""
    arrays = part.arrays()
    place = 1 - half  # shadows of group g drew walk g, those of the other one answered along it
    one = {name: arrays[name][place] for name, axis in part.axes.items() if axis}
    truth: dict[str, Bools] = {name: one[name][shadow] for name in ("inside", "outside")}
    one["target"] = one[ANSWERS[type(part)]][shadow]
    one |= {name: one[name][kept] for name in part.shadows}
    return arrays | {name: np.stack([array, array]) for name, array in one.items()}, truth


def _at_the_point(part: Part, half: int, shadow: int, kept: Bools) -> tuple[dict[str, Any], dict[str, Bools]]:
    """Return the arrays of a part whose shadows of both halves stand in one row, and the truth if it says it."""
    arrays = part.arrays()
    row, everyone = half * part.per_half + shadow, np.ones_like(kept)
    rows = np.concatenate([kept, everyone] if half == 0 else [everyone, kept])
    truth: dict[str, Bools] = {name: arrays[name][row] for name in ("inside", "outside") if name in arrays}
    answers: NDArray[Any] = arrays[ANSWERS[type(part)]][row]
    if isinstance(part, Population):
        answers = np.repeat(answers[None], len(part.target), axis=0)
    return arrays | {name: arrays[name][rows] for name in part.shadows} | {"target": answers}, truth
