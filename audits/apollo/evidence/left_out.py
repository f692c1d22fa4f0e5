"""Evidence without some of its shadows: how much an attack on one model owes to the shadows that it had."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audits.apollo.evidence.base import KINDS
from audits.apollo.evidence.parts import Evidence

MOST_GROUPS = 8


def left_out(found: Evidence, reads: Sequence[str], *, retained: bool = False) -> list[Evidence]:
    """Return the evidence of the kinds ``reads`` without each group of shadows in turn; none with one group alone.

    A group is a block of each half, or several where there are more than ``MOST_GROUPS``. A block keeps the design
    balanced: a pair of complementary online shadows, two pairs where candidates are ``retained`` (they are dealt
    together), one offline shadow. Each group is left out of all kinds at once. Shadows are left out of fits, references
    and nulls; walks and other questions stay those that all shadows have drawn.
    """
    parts = {kind: found.part(kind) for kind in reads}
    blocks = {kind: part.per_half // block(kind, retained) for kind, part in parts.items()}
    groups = min(*blocks.values(), MOST_GROUPS)
    if groups < 2:
        return []
    return [
        Evidence(
            {
                kind: part.of_shadows(
                    np.arange(part.per_half) // block(kind, retained) * groups // blocks[kind] != group
                )
                for kind, part in parts.items()
            },
            found.truth,
            found.unseen,
        )
        for group in range(groups)
    ]


def block(kind: str, retained: bool) -> int:
    """Return how many shadows of a half belong together in evidence of ``kind``."""
    return 1 if "online" not in KINDS[kind].reads else 4 if retained else 2
