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
MEANS = ("at selection", "on the targets", *RATES)
HEADER = ("seed", "chosen", "at selection", "on the targets", "plan as it is", "gain [over targets]", *RATES.values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuned_seeds", description=str(__doc__).split("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run of orch tune tmia")
    runs = [read_result(folder) for folder in parser.parse_args(arguments).runs]
    print(table(HEADER, [line(run) for run in runs]))
    print()
    header = (f"mean over {len(runs)} seeds [95 %]", "chosen", "plan as it is", "difference, paired")
    print(table(header, [over_seeds(name, [values(run) for run in runs]) for name in MEANS]))


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
        *(" / ".join(in_words(each[name]) for each in both) for name in RATES),
    ]


def cell(run: Mapping[str, Any], setting: str) -> Mapping[str, Any]:
    """Return the first cell of result.json about a setting and the metric's attack."""
    attack = place(run["selection"]["metric"]).attack
    cells: Sequence[Mapping[str, Any]] = run["table"]
    return next(each for each in cells if (each["setting"], each["attack"]) == (setting, attack))


def in_words(value: float | None) -> str:
    """Return a count or a rate."""
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"


def gained(run: Mapping[str, Any]) -> float:
    """Return the gain of a run on its targets, 0 where the plan's own setting was chosen."""
    gain = run["selection"]["gain"]
    return 0.0 if gain is None else float(gain["on_targets"])


def values(run: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Return the numbers of a run by name, of the chosen setting and of the plan as it is."""
    found = run["selection"]
    judged = found["judged"][0], found["judged"][-1]
    cells = cell(run, found["winner"]), cell(run, found["own"])
    return {
        "at selection": [each["at_selection"] for each in judged],
        "on the targets": [each["on_targets"] for each in judged],
        **{name: [each[name] for each in cells] for name in RATES},
    }


def over_seeds(name: str, runs: Sequence[Mapping[str, Sequence[float | None]]]) -> list[str]:
    """Return the line of one number: its mean over runs with a t interval; of runs that have it of both settings."""
    both = [(a, b) for a, b in (run[name] for run in runs) if a is not None and b is not None]
    columns = [[a for a, _ in both], [b for _, b in both], [a - b for a, b in both]]
    return [name, *(mean(column, signed=place == 2) for place, column in enumerate(columns))]


def mean(column: Sequence[float], *, signed: bool) -> str:
    """Return mean and t interval of one value a run."""
    form = "{:+.4f}" if signed else "{:.4f}"
    if len(column) < 2:
        return form.format(column[0]) if column else "–"
    ends = ", ".join(form.format(end) for end in ibragimov_mueller_t(column))
    return f"{form.format(fmean(column))} [{ends}]"


if __name__ == "__main__":
    main()
