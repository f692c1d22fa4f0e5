"""Decisions at a promised false-positive rate for scores that come without any: no point sets its own threshold."""

from __future__ import annotations

import numpy as np

from audits.arrays import Floats
from audits.seeds import Purpose, derive_seed, numpy_generator
from audits.statistics.judged import Judged, rows_by
from audits.statistics.roc import randomised_call


def held_out_decisions(judged: Judged, fpr: float, seed: int) -> Floats:
    """Return (n,): the probability of calling each point a member at ``fpr``, by the non-members of its own target.

    The non-members of a target are halved at random. Each half is judged at the threshold that the other sets, a
    member at both, by half. So non-members are called at ``fpr`` on average whatever the scores are, and the TPR is
    free of the optimism of a threshold read off the points that it judges. A target with a single non-member calls
    nobody beyond what chance would.
    """
    found = np.empty(len(judged.scores))
    for place, rows in enumerate(rows_by(judged.target)):
        scores, member = judged.scores[rows], judged.member[rows]
        others = numpy_generator(derive_seed(seed, Purpose.HELD_OUT, place)).permutation(np.flatnonzero(~member))
        first, second = others[::2], others[1::2]
        calls = np.empty(len(rows))
        calls[first] = randomised_call(scores[first], scores[second], fpr)
        calls[second] = randomised_call(scores[second], scores[first], fpr)
        calls[member] = sum(randomised_call(scores[member], scores[half], fpr) for half in (first, second)) / 2
        found[rows] = calls
    return found
