"""U-LiRA with a variance for every point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS
from audits.apollo.attacks.u_lira import ULiRA


@ATTACKS.register("u_lira_per_point")
@dataclass(frozen=True)
class ULiRAPerPoint(ULiRA):
    """``u_lira`` with mean and variance per point and side: more faithful with many shadows, noisier with few.

    Deviations: variances are maximum-likelihood estimates, as in Apollo's public reference; where a side has one shadow
    only (four shadows, leave-one-out), the pooled variance stands in. Else those of ``u_lira``.

    Not for: few shadows, of which ``u_lira`` makes more.
    """

    pooled: ClassVar[bool] = False
