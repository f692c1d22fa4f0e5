"""Lower bounds on ε from guesses about pairs of points: where the scores allow for one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audits.seeds import Purpose, derive_seed
from audits.statistics.epsilon_bound import epsilon_bound
from audits.statistics.judged import Judged, rows_by
from audits.statistics.pair_guesses import SHARES, PairGuesses, pair_guesses
from orchestrator.scored.attacks import Attack
from orchestrator.scored.names import Names
from orchestrator.scored.options import Options
from orchestrator.scored.rows import EpsilonRow

DEPENDENT = 1e-3
"""p-value at or below which memberships of the same points in two targets are no independent draws."""


def why_not(attack: Attack) -> str:
    """Return why the scores of an attack bound no ε, "" if nothing that they show speaks against it."""
    judged = attack.judged
    if judged.cluster is not None:
        return (
            "its targets hang together, two of each pool on the same draw of members, so that pairs are not independent"
        )
    parts = rows_by(judged.target)
    if len(parts) > 1 and judged.point is None:
        return "several targets were asked and no points are named (--point), so that members may be the same in all"
    if judged.point is not None and (name := dependent(judged, attack.targets)):
        return f"{name} share points whose membership is not drawn anew"
    return ""


def dependent(judged: Judged, targets: Names) -> str:
    """Return two targets in which the same points are members more or less often than independent draws would have it.

    By the normal limit of Fisher's test; the level is divided by the number of pairs of targets. Targets that follow
    each other are compared, and the first with all.
    """
    from scipy.special import ndtr

    assert judged.point is not None
    parts = rows_by(judged.target)
    pairs = {(0, place) for place in range(1, len(parts))} | {(place, place + 1) for place in range(len(parts) - 1)}
    for one, other in sorted(pairs):
        shared, first, second = np.intersect1d(
            judged.point[parts[one]], judged.point[parts[other]], assume_unique=False, return_indices=True
        )
        if shared.size < 2:
            continue
        a, b = judged.member[parts[one]][first], judged.member[parts[other]][second]
        spread = a.mean() * (1 - a.mean()) * b.mean() * (1 - b.mean()) * shared.size
        apart = (a & b).sum() - a.mean() * b.mean() * shared.size
        if spread == 0.0 or 2.0 * ndtr(-abs(apart) / np.sqrt(spread)) <= DEPENDENT / len(pairs):
            names = [targets.word(int(judged.target[parts[place][0]])) for place in (one, other)]
            return f"targets {names[0]} and {names[1]}"
    return ""


def bounds(judged: Judged, options: Options) -> list[EpsilonRow]:
    """Return the bound of an attack at each share of the pairs, all together at ``options.level`` (Bonferroni).

    As many members as there are non-members, or the reverse, are drawn at random in each target; those that are left
    are no pair. Shares and matching are fixed before any score is seen, so that no threshold is read off the points.
    """
    found = []
    for share in SHARES:
        made = [_guesses(judged, rows, share, place, options.seed) for place, rows in enumerate(rows_by(judged.target))]
        pairs, guesses, right = (sum(getattr(each, name) for each in made) for name in ("pairs", "guesses", "right"))
        level = 1.0 - (1.0 - options.level) / len(SHARES)
        found.append(
            EpsilonRow(
                setting=judged.setting,
                attack=judged.attack,
                share=share,
                pairs=pairs,
                guesses=guesses,
                right=right,
                delta=options.delta,
                at_least=epsilon_bound(right, guesses, pairs, options.delta, level),
            )
        )
    return found


def _guesses(judged: Judged, rows: np.ndarray, share: float, place: int, seed: int) -> PairGuesses:
    """Return the guesses about the pairs of one target, whatever the order of its rows: they are taken by score."""
    rng = np.random.default_rng(derive_seed(seed, Purpose.PAIR, place))
    rows = rows[np.argsort(judged.scores[rows], kind="stable")]
    kinds = [rng.permutation(rows[judged.member[rows] == kind]) for kind in (True, False)]
    size = min(map(len, kinds))
    kept = np.concatenate([kind[:size] for kind in kinds])
    kept = kept[np.lexsort((judged.member[kept], judged.scores[kept]))]
    return pair_guesses(
        judged.scores[kept], judged.member[kept], share, derive_seed(seed, Purpose.PAIR, place, "match")
    )


def unbounded(found: Sequence[Attack]) -> str:
    """Return the first reason for which an attack bounds no ε, "" where all do."""
    return next((reason for attack in found if (reason := why_not(attack))), "")
