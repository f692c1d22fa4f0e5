"""The score without a fit: more true labels along a walk than shadows that never saw the point lead one to expect.

That is difficulty calibration (Watson et al., arXiv 2111.08440) with labels in place of the loss. Every query of the
walk counts alike; nothing is learnt from pseudo-targets but the null.
"""

from __future__ import annotations

from audits.apollo.attacks.base import Finding
from audits.apollo.evidence.parts import Walks
from audits.arrays import Bools, Floats


def less_expected(walks: Walks) -> Finding:
    """Return the finding of ``surplus`` along both walks; the null are pseudo-targets that never saw the point."""
    expected = walks.confidence.mean((-2, -1))
    parts = [
        (surplus(target, mean), surplus(pseudo, mean)[outside])
        for target, pseudo, mean, outside in zip(walks.target, walks.pseudo, expected, walks.outside, strict=True)
    ]
    return Finding.of_parts(parts, walks.queries)


def surplus(says_true: Bools, expected: Floats) -> Floats:
    """Return share of true labels (…, K) of answers (…, K, Q) minus ``expected`` (K,)."""
    found: Floats = says_true.mean(-1) - expected
    return found
