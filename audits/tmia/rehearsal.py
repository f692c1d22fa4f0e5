"""The sizes of a rehearsal: the same design once more, of points that all belong to the attacker.

Settings of an attack are compared on pseudo-targets: models whose candidates, filler and reference models come out of
the attacker's points B alone, cut at random as the audit cuts its points. Candidates, training sets and pseudo-targets
have the audit's sizes and numbers. What is left of B after the candidates is divided 3 : 10 between filler and the pool
of the reference models, the shares at which neither is warned of where there are 13 training sets.
"""

from __future__ import annotations

from dataclasses import replace

from audits.errors import BadInput
from audits.tmia.design import FILLER_FACTOR, MembershipSplit
from audits.tmia.shared_pool import POOL_FACTOR


def rehearsal_split(split: MembershipSplit, read: int) -> MembershipSplit:
    """Return the sizes of the rehearsal of a design of sizes ``split``: filler is what is left, controls are none.

    ``read``: points of the attacker's that selectors and attacks read, for which the rehearsal's pool must suffice;
    sizes do not depend on it, so that settings which read more or less are rehearsed on the same models. Raises
    BadInput where the attacker has too few points, and says how many would do.
    """
    left = split.attacker_points - split.candidates
    filler = max(left * FILLER_FACTOR // (FILLER_FACTOR + POOL_FACTOR), split.filler_per_target)
    pool = left - filler
    if pool < (least := max(split.train_size, read)):
        raise BadInput(
            f"a rehearsal takes {split.candidates} candidates, filler and a pool of {least} points or more out of "
            f"split.attacker_points ({split.attacker_points}); give it "
            f"{needed(split, least)} or more, or lower split.candidates, split.train_size or audit.reference_samples"
        )
    return replace(split, attacker_points=pool, filler=None, null_models=0, overfitted_models=0)


def needed(split: MembershipSplit, pool: int) -> int:
    """Return the attacker's points that leave ``pool`` points to the reference models of a rehearsal."""
    whole = FILLER_FACTOR + POOL_FACTOR
    by_shares = -(-pool * whole // POOL_FACTOR)
    return split.candidates + max(by_shares, pool + split.filler_per_target)
