"""Every audit under the null hypothesis: who was asked about was exchanged with others before training.

    python -m benchmarks.null                              # all, minutes each on two cores; prints tables
    python -m benchmarks.null apollo --seed 7 --workers 4
    python -m benchmarks.null --quick                      # shows that it works; the numbers mean little

No asked point was ever trained on, so all that is promised must hold of the points that pass for members as well as of
the others: rates of false calls at 1, 5 and 10 %, AUCs at one half, lower bounds on ε at zero, no point exposed, gates
passed. An interval misses the truth by luck one time in twenty, so each p-value is corrected by Holm over its audit.
The exit code is 1 where one stays at or below .05, a bound is above zero, a point is exposed or a gate fails. Luck does
that to one Apollo in seven at the most (.05 and a promised false discovery rate of .1), to others to one in ten.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from audits.errors import BadInput
from audits.statistics.controls import corrected
from benchmarks.null_audits import AUDITS
from benchmarks.null_checks import LEVEL, Check, Found
from benchmarks.record import table

SEED = 1510
"""Fixed before any run of this script."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; see the module's text. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.null", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("audits", nargs="*", metavar="AUDIT", help=f"{', '.join(AUDITS)}; all without any")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of all draws (default {SEED})")
    parser.add_argument("--workers", default="auto", help="worker processes: a number, 0 for none, or auto")
    parser.add_argument("--out", type=Path, help="folder of the runs and their store (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="the smallest plans: shows that it works")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.audits) - set(AUDITS)):
        parser.error(f"no audit {unknown[0]!r}; allowed: {', '.join(AUDITS)}")
    workers = int(options.workers) if options.workers.isdecimal() else options.workers
    code = 0
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder)
        for name in options.audits or AUDITS:
            try:
                found = AUDITS[name](out, options.seed, workers, options.quick)
            except BadInput as error:
                parser.error(str(error))
            verdicts = verdict(found)
            lines = [f"## {name}, seed {options.seed}\n", tables(found), found.power, *verdicts, ""]
            print("\n".join(lines), flush=True)
            code = max(code, int(any(line.startswith("BROKEN") for line in verdicts)))
    return code


def verdict(found: Found) -> list[str]:
    """Return how many intervals miss what was promised, how many luck makes miss, and what does not hold."""
    checks = found.checks
    missed = sum(not check.low <= check.promised <= check.high for check in checks)
    lines = [f"{missed} of {len(checks)} intervals miss; luck alone: {len(checks) * (1 - LEVEL):.0f} or fewer."]
    for check, p in zip(checks, corrected([check.p for check in checks]), strict=True):
        if p is not None and p <= 1 - LEVEL:
            lines.append(
                f"BROKEN: {check.what}, {check.where}: {check.value:.3f} [{check.low:.3f}, {check.high:.3f}] where "
                f"{check.promised:g} is promised, p {p:.2g} after Holm"
            )
    return [*lines, *(f"BROKEN: {text}" for text in found.broken)]


def tables(found: Found) -> str:
    """Return a line for each kind of number: how many, their range, and the one that is furthest off."""
    kinds: dict[str, list[Check]] = {}
    for check in found.checks:
        kinds.setdefault(check.what, []).append(check)
    rows = []
    for what, own in kinds.items():
        least, most, worst = min(x.value for x in own), max(x.value for x in own), min(own, key=lambda x: x.p)
        missed = sum(not check.low <= check.promised <= check.high for check in own)
        furthest = f"{worst.value:.3f} [{worst.low:.3f}, {worst.high:.3f}] ({worst.where})"
        rows.append([what, f"{own[0].promised:g}", str(len(own)), f"{least:.3f} to {most:.3f}", str(missed), furthest])
    header = ["of points never trained on", "promised", "cells", "found", "intervals that miss", "furthest off [95 %]"]
    return table(header, rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
