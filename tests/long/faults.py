"""Strike runs with faults and see whether anything is damaged, lost, done twice, or left.

``python -m tests.long.faults --seed 1 --count 100``: prints a line a fault while it runs, and a Markdown table by kind
at the end. ``--only WORD`` takes kinds whose name has WORD. Exit status 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.long.fault_kinds import KINDS, Fault, Scenario, draw
from tests.long.scenario import carry_out
from tests.long.struck_runs import reference

COLUMNS = (
    "fault",
    "number",
    "ended by themselves",
    "needed the same command again",
    "seconds lost (median)",
    "models done twice",
    "left processes",
    "bits equal",
)


def table(faults: Sequence[Fault]) -> str:
    """Return the Markdown table."""
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    for kind in [*KINDS, "all"]:
        own = [fault for fault in faults if kind in (fault.kind, "all")]
        if own:
            alone = sum(fault.by_itself for fault in own)
            rows.append(
                (
                    kind,
                    str(len(own)),
                    str(alone),
                    str(len(own) - alone),
                    f"{statistics.median(fault.lost for fault in own):.0f}",
                    str(sum(fault.twice for fault in own)),
                    str(sum(len(fault.left) for fault in own)),
                    f"{sum(bool(fault.equal) for fault in own)} of {len(own)}",
                )
            )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def strike_all(
    seed: int, count: int, only: str | None, together: int, keep: Path, minutes: float = float("inf")
) -> tuple[list[Fault], list[str]]:
    """Carry out the runs, ``together`` at a time; return the faults that struck and what went wrong beside them.

    After ``minutes`` no further run is begun.
    """
    scenarios = draw(seed, count, only)
    begin, lock = time.monotonic(), threading.Lock()

    def tell(text: str) -> None:
        with lock:
            print(f"{time.monotonic() - begin:5.0f} s  {text}", flush=True)  # noqa: T201

    expected = {}
    for work in dict.fromkeys(scenario.work for scenario in scenarios):
        (keep / work).mkdir(parents=True)
        expected[work] = reference(work, keep / work)
    tell("undisturbed runs are done")

    def in_time(one: Scenario) -> list[str]:
        late = time.monotonic() - begin > minutes * 60
        return [] if late else carry_out(one, expected[one.work], tell, keep)

    with ThreadPoolExecutor(together) as pool:
        runs = [pool.submit(in_time, one) for one in scenarios]
        problems = [text for run in runs for text in run.result()]
    return [fault for one in scenarios for fault in one.faults if fault.at], problems


def main() -> int:
    """Read the command line and strike."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only")
    parser.add_argument("--together", type=int, default=2, help="runs at a time")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no further run after this time")
    chosen = parser.parse_args()
    keep = Path(tempfile.mkdtemp(prefix="faults-"))
    begin = time.monotonic()
    faults, problems = strike_all(chosen.seed, chosen.count, chosen.only, chosen.together, keep, chosen.minutes)
    print(table(faults))  # noqa: T201
    broken = [fault for fault in faults if fault.problems or fault.left or not fault.equal or fault.twice]
    for line in [*(fault.line() for fault in broken), *problems]:
        print(line)  # noqa: T201
    load = ", ".join(f"{value:.0f}" for value in os.getloadavg())
    print(f"{len(faults)} faults in {time.monotonic() - begin:.0f} s; load {load}; files in {keep}")  # noqa: T201
    return 1 if broken or problems else 0


if __name__ == "__main__":
    sys.exit(main())
