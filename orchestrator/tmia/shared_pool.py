"""The correction of p-values for the pool that the attacker's models share, as a plan asks for it."""

from __future__ import annotations

from audits.tmia.shared_pool import pool_sets_of
from orchestrator.tmia.plan import TmiaPlan


def pool_sets(plan: TmiaPlan) -> float:
    """Return the training sets in the pool that reference models share, for which p-values are corrected.

    Infinite where the plan asks for raw p-values.
    """
    return pool_sets_of(plan.split.attacker_points, plan.split.train_size, corrected=plan.audit.pool_correction)
