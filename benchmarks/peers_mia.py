"""Membership attacks: ours beside LeakPro's and SACRO-ML's, on the same targets and shadows, in one process.

    python -m benchmarks.peers_mia                     # of `orch audit mia`, from its store (ORCH_STORE, or --store)
    python -m benchmarks.peers_mia runs/mia/plan.yaml  # of the plan of another run
    python -m benchmarks.peers_mia --seeds 1 2 3       # of the plan at other seeds, their pools together
    python -m benchmarks.peers_mia --quick             # shows that it works; the numbers mean nothing

Targets and shadows are those of a plan of `orch audit mia`; what the store lacks is trained first. Every attack gets
the logits of the same models, and who of them was trained on what; canaries are left out. The AUC is that of each
target, its mean over the two targets of a pool one value, and intervals are Student's over pools; differences are
paired in pools, and called so where their p-value holds after Holm's correction over all comparisons. Rates are read
off the ROC for all, whose thresholds nobody has beforehand. A second table says what our attacks do at rates that they
promise, which peers do not.

Peers are called, not copied (``benchmarks/peers_mia_forms.py``); one that is not installed is left out.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from audits.arrays import Floats
from audits.errors import BadInput
from audits.mia.attacks import MIA_ATTACKS
from audits.statistics.intervals import ibragimov_mueller_t
from audits.statistics.null import holm
from audits.statistics.roc import auc, roc, tpr_at_fpr
from audits.statistics.summary import paired_difference
from benchmarks.peers_mia_answers import Handed, handed, opened
from benchmarks.peers_mia_forms import OURS, PEERS, Form, case, forms, missing, words
from benchmarks.peers_mia_tables import RATES, tables
from benchmarks.record import SCHEMA, add_output_options, environment, rounded, write
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.store.store import Store, default_store_uri
from orchestrator.kinds import load_plan

PLAN = "mia-fashion14"
WARM = 100
"""Points of each kind on which every attack runs before it is timed: it pays for start-up."""


@dataclass(frozen=True)
class Said:
    """What an attack says about one target: its ``rates`` of hits at ``RATES`` off the ROC, and CPU seconds."""

    pool: int
    auc: float
    rates: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class Promised:
    """What ours says about one target at promised ``RATES``: shares of members and others called; CPU seconds."""

    pool: int
    tpr: tuple[float, ...]
    fpr: tuple[float, ...]
    seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers_mia", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("plan", nargs="?", metavar="PLAN", help=f"a file or a shipped plan's name (default {PLAN})")
    parser.add_argument("--store", metavar="URI", help="where finished models are kept (or ORCH_STORE)")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="SEED", help="seeds of the plan (default: its own)")
    parser.add_argument("--quick", action="store_true", help="a tiny plan in a store of its own: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name in missing():
        print(f"{name} is not installed, its rows are left out ({PEERS[name]})", file=sys.stderr)
    logging.disable(logging.INFO)
    try:
        with TemporaryDirectory() as folder:
            name = options.plan or ("mia-smoke" if options.quick else PLAN)
            plan = load_plan(name, values={"compute.workers": 0})
            place = folder if options.quick else options.store or plan.compute.store or default_store_uri()
            contexts = [opened(each, Store(place)) for each in at_seeds(plan, options.seeds)]
            at = environment(contexts[0].design.device, plan.compute.threads)
            record = {**head(name, options, at), **measured(together(map(handed, contexts)))}
    except BadInput as error:
        parser.error(str(error))
    finally:
        logging.disable(logging.NOTSET)
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def at_seeds(plan: BasePlan, seeds: Sequence[int] | None) -> list[BasePlan]:
    """Return the plan at each of ``seeds``, or as it is."""
    return [plan.changed({"seed": seed}) for seed in seeds] if seeds else [plan]


def together(runs: Iterable[Iterable[Handed]]) -> list[Handed]:
    """Return the targets of all runs; the pools of one are not those of another."""
    numbers: dict[tuple[int, int], int] = {}
    return [
        replace(target, pool=numbers.setdefault((run, target.pool), len(numbers)))
        for run, targets in enumerate(runs)
        for target in targets
    ]


def head(plan: str, options: argparse.Namespace, at: Mapping[str, Any]) -> dict[str, Any]:
    """Return what names a record: the command, and the versions of the peers."""
    told = ["python -m benchmarks.peers_mia", *([options.plan] if options.plan else [])]
    seeds = ["--seeds", *map(str, options.seeds)] if options.seeds else []
    return {
        "schema": SCHEMA,
        "benchmark": "peers_mia",
        "section": "peers_mia cpu",
        "command": " ".join([*told, *seeds, *(["--quick"] if options.quick else [])]),
        "environment": at,
        "repeats": 1,
        "plan": plan,
        "peers": {name: version_of(name) for name in PEERS if name not in missing()},
    }


def version_of(package: str) -> str:
    """Return the version of an installed package; a folder on the path has none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "from a folder"


def measured(targets: Sequence[Handed]) -> dict[str, Any]:
    """Return the rows of all attacks, each beside ours that asks the same, and of ours at promised rates."""
    first = targets[0]
    warm = first.at(np.sort(np.concatenate([np.flatnonzero(side)[:WARM] for side in (first.member, ~first.member)])))
    found: dict[str, list[Said]] = {}
    kinds = forms()
    for form in kinds:
        print(form.name, file=sys.stderr)
        said(form, warm)
        found[form.name] = [said(form, target) for target in targets]
    promises = {}
    for attack in OURS:
        print(f"{words(attack)} at promised rates", file=sys.stderr)
        promised(attack, warm)
        promises[attack] = [promised(attack, target) for target in targets]
    return {
        "pools": len({target.pool for target in targets}),
        "targets": len(targets),
        "shadows": len(first.half),
        "points": len(first.member),
        "attacks": compared(kinds, found),
        "promised": [promise(attack, of) for attack, of in promises.items()],
    }


def said(form: Form, target: Handed) -> Said:
    """Return what an attack says about a target."""
    with form.prepared(target) as scores, redirect_stderr(io.StringIO()):  # peers draw bars
        began = time.process_time()
        score = scores()
        seconds = time.process_time() - began
    rates = tpr_at_fpr(roc(score, target.member), np.array(RATES))
    return Said(target.pool, auc(score, target.member), tuple(map(float, rates)), seconds)


def promised(attack: str, target: Handed) -> Promised:
    """Return what our attack calls members at rates that it promises, by thresholds that no point of theirs sets."""
    began = time.process_time()
    finding = MIA_ATTACKS[attack]().judge(case(target))
    calls = [finding.decide(rate)[0] for rate in RATES]
    seconds = time.process_time() - began
    shares = [tuple(float(call[side].mean()) for call in calls) for side in (target.member, ~target.member)]
    return Promised(target.pool, shares[0], shares[1], seconds)


def compared(kinds: Sequence[Form], found: Mapping[str, Sequence[Said]]) -> list[dict[str, Any]]:
    """Return the row of every attack, and of the peers' how far ours that asks the same lies above it."""
    mine = {form.ours: found[form.name] for form in kinds if not form.package}
    rows = []
    for form in kinds:
        own = found[form.name]
        row: dict[str, Any] = {"name": form.name, "ours": form.ours, "package": form.package}
        row["auc"] = over_pools((one.pool, one.auc) for one in own)
        for place, rate in enumerate(RATES):
            row[f"roc_tpr_{rate:g}"] = over_pools((one.pool, one.rates[place]) for one in own)
        row["cpu_seconds"] = rounded(float(np.median([one.seconds for one in own])))
        if form.package:
            ours = mine[form.ours]
            row["difference"] = shorter(asdict(paired_difference(by_pool(ours), by_pool(own))))
            ratios = [its.seconds / one.seconds for one, its in zip(ours, own, strict=True)]
            row["seconds_ratio"] = rounded(float(np.median(ratios)))
        rows.append(row)
    told = [row["difference"] for row in rows if "difference" in row]
    for difference, p in zip(told, holm([each["p"] for each in told]), strict=True):
        difference["p_holm"] = rounded(float(p))
    return rows


def promise(attack: str, found: Sequence[Promised]) -> dict[str, Any]:
    """Return the row of our attack at promised rates."""
    row: dict[str, Any] = {"name": words(attack), "cpu_seconds": rounded(float(np.median([x.seconds for x in found])))}
    for place, rate in enumerate(RATES):
        row[f"tpr_{rate:g}"] = over_pools((one.pool, one.tpr[place]) for one in found)
        row[f"fpr_{rate:g}"] = over_pools((one.pool, one.fpr[place]) for one in found)
    return row


def by_pool(said: Iterable[Said]) -> dict[int, float]:
    """Return the mean AUC over the targets of each pool."""
    return means((one.pool, one.auc) for one in said)


def means(values: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Return the mean of the values of each pool."""
    groups: dict[int, list[float]] = {}
    for pool, value in values:
        groups.setdefault(pool, []).append(value)
    return {pool: float(np.mean(own)) for pool, own in groups.items()}


def over_pools(values: Iterable[tuple[int, float]]) -> dict[str, float]:
    """Return the mean over pools with its 95 % interval."""
    of: Floats = np.array(list(means(values).values()))
    low, high = ibragimov_mueller_t(of)
    return shorter({"mean": float(of.mean()), "low": low, "high": high})


def shorter(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values with four significant digits."""
    return {name: rounded(value) for name, value in values.items()}


if __name__ == "__main__":
    main()
