"""The share of sound membership audits that take back their null results because a promised rate seems broken.

    python -m benchmarks.null_promises        about a minute on one core

Rows are drawn, not trained: every attack calls each point of every pool at exactly the promised rate, by itself, on
targets and on null models. The two families of rates are corrected each by itself (Holm).
"""

from __future__ import annotations

import argparse

import numpy as np

from audits.statistics.controls import clustered_rate_p, corrected, off
from audits.statistics.intervals import clopper_pearson

LEVEL, RATES, ATTACKS = 0.95, (0.01, 0.05, 0.1), 9


def broken(rng: np.random.Generator, pools: int, points: int) -> bool:
    """Say whether any rate of a run lies above its promise after the correction, as ``judged_rows`` of MIA does."""
    for _ in ("targets", "null models"):
        sizes = np.full(pools, float(points))
        found = [clustered_rate_p(rng.binomial(points, rate, pools), sizes, rate, LEVEL)
                 for _ in range(ATTACKS) for rate in RATES]  # fmt: skip
        if any(off(p, LEVEL) for p in corrected(found)):
            return True
    return False


def main() -> None:
    """Print the share of runs for several numbers of pools and points."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=1000)
    runs, rng = options.parse_args().runs, np.random.default_rng(1510)
    for pools, points in ((3, 400), (6, 2000), (12, 2000)):
        count = sum(broken(rng, pools, points) for _ in range(runs))
        low, high = clopper_pearson(count, runs, LEVEL)
        print(f"{pools} pools of {points}: {count} of {runs}, {count / runs:.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
