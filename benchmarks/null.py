"""Every audit under the null hypothesis: who was asked about was exchanged with others before training.

    python -m benchmarks.null                              # all three, minutes each on two cores; prints tables
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits.errors import BadInput
from audits.statistics.controls import corrected, interval_p, rate_p
from benchmarks.null_kinds import APOLLO, GNQ, TMIA
from benchmarks.record import table
from orchestrator.engine.gate import failures, gates_of
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.run import Run
from orchestrator.engine.setting import Setting
from orchestrator.kinds import load_plan

LEVEL = 0.95
RATES = (0.01, 0.05, 0.1)
SEED = 1510
"""Fixed before any run of this script."""

SIZES: Mapping[str, Mapping[str, Any]] = {
    "apollo": {
        "split.targets": 40,
        "split.target_pool": 20000,
        "split.test_pool": 6000,
        "unlearning": [{"method": "identity"}, {"method": "gradient_ascent"}, {"method": "retrain"}],
        "audit.fpr": list(RATES),
    },
    "tmia": {"split.reference_models": 200},
    "gnq": {},
}
QUICK: Mapping[str, Mapping[str, Any]] = {
    "apollo": {},
    "tmia": {"variants": {}},
    "gnq": {"split.pools": 4, "split.test": 500},
}
LIMITS = {
    "apollo": ("labels.auc=0.6", "posteriors.auc=0.6"),
    "tmia": ("labels.auc_low=0.6", "precision_low=0.6"),
    "gnq": ("auc=0.6", "posteriors.auc=0.6"),
}


@dataclass(frozen=True)
class Check:
    """A number that must be ``promised``, with its interval and the p-value of that; ``what`` and ``where`` name it."""

    what: str
    where: str
    value: float
    low: float
    high: float
    promised: float
    p: float


@dataclass(frozen=True)
class Found:
    """What an audit shows under the null hypothesis; ``broken``: what else was promised and did not hold, in words."""

    checks: tuple[Check, ...]
    broken: tuple[str, ...]
    power: str


class Untracked(Run):
    """A run that leaves plan, result and scores, without page and tracking."""

    def report(self, document: Mapping[str, Any]) -> None:
        """Draw nothing."""

    def watch(self, settings: Sequence[Setting], left: Sequence[Sequence[Job]]) -> None:
        """Log nothing while the run goes on."""

    def track(self, document: dict[str, Any]) -> None:
        """Log nothing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; see the module's text. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.null", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("audits", nargs="*", metavar="AUDIT", help="apollo, tmia, gnq; all without any")
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


def carried_out(
    kind: Kind, name: str, out: Path, seed: int, workers: Any, quick: bool, **changes: Any
) -> tuple[BasePlan, dict[str, Any], list[str]]:
    """Run the audit ``kind`` and return its plan, its result and what its gates say."""
    sizes = QUICK[kind.name] if quick else SIZES[kind.name]
    values = {**sizes, **changes, "seed": seed, "compute.workers": workers, "compute.store": str(out / "store")}
    plan = load_plan(f"{kind.name}-{'smoke' if quick else 'fashion14'}", values=values)
    terminal = Terminal(claim_folder(out / name, plan, force=True), json=True)
    run = Untracked(kind, plan, out / name, terminal, name=f"null-{kind.name}", rebuild=False)
    document = run.audit().to_json()
    gates = gates_of(LIMITS[kind.name], kind.headline, plan)
    return plan, document, failures(gates, kind.headline, plan, document)


def null_apollo(out: Path, seed: int, workers: Any, quick: bool) -> Found:
    """Return what Apollo finds of targets that never saw a candidate; ``identity`` alone is as it always is."""
    _, document, gates = carried_out(APOLLO, "apollo", out, seed, workers, quick)
    exchanged = [row for row in document["table"] if row["unlearner"] != "identity"]
    first = [row for row in exchanged if row["promised_fpr"] == exchanged[0]["promised_fpr"]]
    checks = [area(row, "auc", "AUC", row["targets"]) for row in first]
    for row in exchanged:
        for metric, whom in (("tpr", "passed for forgotten"), ("found_fpr", "unseen")):
            what = f"called forgotten, {whom}, at {row['promised_fpr']:g}"
            checks.append(rate(row, metric, what, row["promised_fpr"], row["targets"]))
    points = document["exposed"]["points"] if document["exposed"] else []
    named = [point for point in points if point["unlearner"] != "identity"]
    control = max((row for row in document["table"] if row["unlearner"] == "identity"), key=lambda row: row["auc"])
    power = f"identity, where nothing was exchanged: {control['attack']} AUC {ends(control, 'auc')}."
    return Found(tuple(checks), (*exposed(len(named)), *gates), power)


def null_tmia(out: Path, seed: int, workers: Any, quick: bool) -> Found:
    """Return what TMIA finds of targets that never saw a candidate, at each level of the test."""
    checks: list[Check] = []
    said: list[str] = []
    for tested in ({},) if quick else ({"audit.beta": beta} for beta in RATES):
        name = f"tmia-{tested.get('audit.beta', 'quick')}"
        plan, document, gates = carried_out(TMIA, name, out, seed, workers, quick, **tested)
        beta = plan.resolved()["audit"]["beta"]
        said += gates
        promising = [row for row in document["table"] if row["expected_false_positives"] is not None]
        for metric, whom in (("coverage", "passed for members"), ("fpr", "the others"), ("null_fpr", "null models")):
            models = {True: "null_models", False: "targets"}[metric == "null_fpr"]
            checks += [
                rate(row, metric, f"called members, {whom}, at {beta:g}", beta, row[models])
                for row in promising
                if row[metric] is not None
            ]
        if beta == 0.05 or quick:
            checks += [area(row, "auc", "AUC", row["targets"]) for row in document["table"] if row["auc"] is not None]
    return Found(tuple(checks), tuple(said), "")


def null_gnq(out: Path, seed: int, workers: Any, quick: bool) -> Found:
    """Return what GNQ's attacks find of targets that saw no point of their pool, and the bounds on ε."""
    _, document, gates = carried_out(GNQ, "gnq", out, seed, workers, quick)
    fair = [row for row in document["table"] if row["group"] in ("contributors", "kept") and row["moment"] != "before"]
    checks = tuple(area(row, "auc", f"AUC, moment {row['moment']}", row["pools"]) for row in fair)
    bounds = [row for row in document["epsilons"] if row["at_least"] > 0]
    broken = [f"the bound on ε of {row['arm']} is {row['at_least']:.3f} ({row['attack']})" for row in bounds]
    total = f"{len(document['epsilons'])} rows of bounds on ε, {len(bounds)} above 0."
    return Found(checks, (*broken, *gates), total)


def area(row: Mapping[str, Any], metric: str, what: str, units: int) -> Check:
    """Return the check that an AUC is one half."""
    value, low, high = row[metric], row[f"{metric}_low"], row[f"{metric}_high"]
    return Check(what, place(row), value, low, high, 0.5, interval_p(value, low, high, 0.5, LEVEL, max(1, units - 1)))


def rate(row: Mapping[str, Any], metric: str, what: str, promised: float, units: int) -> Check:
    """Return the check that a rate is at most what was promised: lower is no broken promise, and no miss."""
    value, low, high = row[metric], row[f"{metric}_low"], row[f"{metric}_high"]
    high = max(high, promised)
    return Check(what, place(row), value, low, high, promised, rate_p(value, low, promised, LEVEL, max(1, units - 1)))


def place(row: Mapping[str, Any]) -> str:
    """Return the cell of a row in words."""
    names = ("setting", "unlearner", "arm", "selection", "group", "attack", "shadows")
    return ", ".join(str(row[name]) for name in names if row.get(name) and row[name] != "base")


def ends(row: Mapping[str, Any], metric: str) -> str:
    """Return a number with its interval."""
    return f"{row[metric]:.3f} [{row[f'{metric}_low']:.3f}, {row[f'{metric}_high']:.3f}]"


def exposed(count: int) -> Iterator[str]:
    """Yield a line where points were named."""
    if count:
        yield f"{count} points that were never trained on are exposed"


AUDITS = {"apollo": null_apollo, "tmia": null_tmia, "gnq": null_gnq}


if __name__ == "__main__":
    sys.exit(main())
