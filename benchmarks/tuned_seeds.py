"""Runs of ``orch tune tmia`` that differ by their seed, side by side: what was chosen, and what it gained on targets.

    python -m benchmarks.tuned_seeds runs/tuned-1 runs/tuned-2 …

The seed draws points, models and directions anew: an interval over seeds covers candidates and reference models, which
one over the targets of a run takes as they are. One line a run, then the mean over runs with a t interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from audits.statistics.intervals import ibragimov_mueller_t
from benchmarks.record import table
from orchestrator.report.result import read_result
from orchestrator.tmia.selection import place

RATES = {
    "candidates": "asked about",
    "precision": "precision",
    "coverage": "coverage",
    "fpr": "FPR",
    "null_fpr": "null FPR",
}
HEADER = ("seed", "chosen", "at selection", "on the targets", "plan as it is", "gain [over targets]", *RATES.values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuned_seeds", description=str(__doc__).split("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run of orch tune tmia")
    runs = [read_result(folder) for folder in parser.parse_args(arguments).runs]
    print(table(HEADER, [line(run) for run in runs]))
    for what, of in (("gain", gained), ("chosen, on the targets", on_targets)):
        print(f"\n{what}, mean of {len(runs)} seeds: {over_seeds([of(run) for run in runs])}")


def line(run: Mapping[str, Any]) -> list[str]:
    """Return the line of a run: what is said of the chosen setting, and behind the stroke of the plan as it is."""
    found = run["selection"]
    chosen, own = found["judged"][0], found["judged"][-1]
    gain = found["gain"]
    beside = (
        f"[{gain['on_targets_low']:+.4f}, {gain['on_targets_high']:+.4f}]" if gain else "(chosen is the plan's own)"
    )
    both = cell(run, found["winner"]), cell(run, found["own"])
    return [
        str(run["seed"]),
        found["winner"],
        f"{chosen['at_selection']:.4f}",
        f"{chosen['on_targets']:.4f}",
        f"{own['on_targets']:.4f}",
        f"{gained(run):+.4f} {beside}",
        *(" / ".join(told(each[name]) for each in both) for name in RATES),
    ]


def cell(run: Mapping[str, Any], setting: str) -> Mapping[str, Any]:
    """Return the first cell of result.json about a setting and the metric's attack."""
    attack = place(run["selection"]["metric"]).attack
    cells: Sequence[Mapping[str, Any]] = run["table"]
    return next(each for each in cells if (each["setting"], each["attack"]) == (setting, attack))


def told(value: float | None) -> str:
    """Return a count or a rate."""
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"


def gained(run: Mapping[str, Any]) -> float:
    """Return the gain of a run on its targets, 0 where the plan's own setting was chosen."""
    gain = run["selection"]["gain"]
    return 0.0 if gain is None else float(gain["on_targets"])


def on_targets(run: Mapping[str, Any]) -> float:
    """Return what the chosen setting found of the targets."""
    return float(run["selection"]["judged"][0]["on_targets"])


def over_seeds(values: Sequence[float]) -> str:
    """Return mean and t interval of one value a run."""
    if len(values) < 2:
        return f"{fmean(values):+.4f}"
    low, high = ibragimov_mueller_t(values)
    return f"{fmean(values):+.4f} [{low:+.4f}, {high:+.4f}]"


if __name__ == "__main__":
    main()
