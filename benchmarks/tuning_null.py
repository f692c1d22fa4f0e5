"""Fifty settings of an attack, tuned where there is nothing to be found: what each way of choosing claims.

    python -m benchmarks.tuning_null                # five seeds, minutes each on one core
    python -m benchmarks.tuning_null --quick        # shows that it works; the numbers mean nothing

Against *retrain* no forgotten point can be recognised: the truth is an AUC of ½, whatever the setting. *Best on the
targets* is what a sweep invites to: of all settings the one with the highest AUC on the targets is quoted, with its AUC
there and its p-value by permutation, which knows of one setting. ``orch tune`` chooses by what the attack finds of
shadows that play the target, freezes the setting, and only then asks the targets. *identity*, where nothing was
unlearned, is the positive control: there both ways must find it.

The settings of Apollo's search (ε, T, β, norm) are drawn once; seeds draw points, models and directions anew. Models
are trained by the stages of the audit. Evidence is gathered once for both ways, by the functions that ``orch tune``
calls (a test compares the two).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import numpy as np

from audits.apollo.attacks import ATTACKS, calibration
from audits.apollo.evidence import KINDS, Evidence
from audits.apollo.rehearsal import rehearsed
from audits.statistics.intervals import nested_t
from audits.statistics.null import permutation_p
from audits.statistics.roc import auc
from benchmarks.record import SCHEMA, add_output_options, described, environment, table, write
from orchestrator.apollo.design import ApolloDesign
from orchestrator.apollo.kind import KIND
from orchestrator.apollo.stages.searching import case
from orchestrator.engine.data import data_of
from orchestrator.engine.run.choice import Choice
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.store import Store
from orchestrator.kinds import load_plan
from tune_spaces.registry import Settings

SEEDS = (0, 1, 2, 3, 4)
"""Fixed before any run of this script, as is the seed of the settings."""
SEED_OF_SETTINGS = 18
SETTINGS = 50
METHODS = ("retrain", "identity")
ATTACK = "apollo"

PLAN: Mapping[str, Any] = {
    "audit.attacks": [ATTACK],
    "audit.fpr": [0.1],
    "split.targets": 4,
    "split.train_size": 250,
    "split.target_pool": 1000,
    "split.shadow_pool": 6000,
    "split.test_pool": 600,
    "split.candidates": {"forget": 25, "unseen": 25},
    "split.shadows": 8,
    "split.offline_shadows": 2,
    "recipe.epochs": 40,
    "unlearning": [{"method": "identity"}, {"method": "retrain"}],
}
QUICK: Mapping[str, Any] = {
    **PLAN,
    "split.targets": 2,
    "split.train_size": 100,
    "split.target_pool": 200,
    "split.shadow_pool": 800,
    "split.test_pool": 100,
    "split.candidates": {"forget": 10, "unseen": 10},
    "recipe.epochs": 2,
    "model.settings.hidden": [16],
    "audit.fpr": [0.5],
    "audit.permutations": 100,
}


@dataclass(frozen=True)
class Tried:
    """One setting against one method with one seed: scores of all targets' candidates, and what shadows let expect.

    ``score``, ``forgotten``, ``called`` and ``target``: (N,); ``selection``: one score for each shadow set.
    """

    score: np.ndarray[Any, Any]
    forgotten: np.ndarray[Any, Any]
    called: np.ndarray[Any, Any]
    target: np.ndarray[Any, Any]
    selection: list[float]

    @property
    def areas(self) -> list[float]:
        """The AUC of each target."""
        own = [self.target == each for each in np.unique(self.target)]
        return [auc(self.score[rows], self.forgotten[rows]) for rows in own]

    def p(self, draws: int) -> float:
        """Return the p-value of "no better than chance", by permutations within targets."""
        return float(permutation_p(self.score[:, None], self.forgotten, self.target, draws=draws, seed=0)[0])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning_null", description=str(__doc__).split("\n")[0])
    parser.add_argument("--out", type=Path, help="folder of the store of models (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="one seed, tiny: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    seeds, settings = (SEEDS[:1], drawn(1)) if options.quick else (SEEDS, drawn(SETTINGS))
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "tuning_null",
        "section": "tuning_null",
        "command": "python -m benchmarks.tuning_null" + " --quick" * options.quick,
        "environment": environment("cpu", 1),
        "repeats": 1,
        "settings": len(settings),
        "plan": dict(QUICK if options.quick else PLAN),
    }
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder)
        record["seeds"] = [of_seed(out, seed, settings, options.quick) for seed in seeds]
    record["seconds"] = round(time.perf_counter() - begin)
    record["methods"] = {method: over_seeds(record["seeds"], method) for method in METHODS}
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def drawn(count: int) -> Settings:
    """Return ``count`` settings of the search; shells of the largest change of a pixel are narrower by √196."""
    rng = np.random.default_rng(SEED_OF_SETTINGS)
    found = {}
    for index in range(count):
        norm = ("l2", "linf")[index % 2]
        width = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5)))) / (1 if norm == "l2" else 14)
        values = {
            "epsilon": float(f"{width:.3g}"),
            "steps": int(rng.integers(1, 6)),
            "beta": float(f"{np.exp(rng.uniform(np.log(0.25), np.log(16))):.3g}"),
            "norm": norm,
        }
        found[f"{index:02d}"] = {f"audit.search.{name}": value for name, value in values.items()}
    return found


def of_seed(out: Path, seed: int, settings: Settings, quick: bool) -> dict[str, Any]:
    """Return, for each method, what both ways of choosing claim with one seed."""
    print(f"seed {seed}", file=sys.stderr, flush=True)
    values = {**(QUICK if quick else PLAN), "seed": seed, "compute.store": str(out / "store")}
    plan = load_plan("apollo-fashion14", values=values)
    found: dict[str, Any] = {"seed": seed}
    tried = {name: dict(each) for name, each in everything(plan, {"plan": {}, **settings})}
    for method in METHODS:
        own = {name: each[method] for name, each in tried.items()}
        areas = {name: fmean(each.areas) for name, each in own.items()}
        best = max(areas, key=lambda name: areas[name])
        choice = Choice("tuning-null", f"{method}.{ATTACK}.auc", "max", "plan", {"plan": {}, **settings})
        winner = choice.winner({name: each.selection for name, each in own.items()})
        chosen, draws = own[winner], plan.audit.permutations
        found[method] = {
            "best": {"setting": best, "auc": areas[best], "auc_p": own[best].p(draws)},
            "mean_of_all": fmean(areas.values()),
            "winner": winner,
            "at_selection": fmean(chosen.selection),
            "own": areas["plan"],
            "auc_p": chosen.p(draws),
            "found_fpr": float(chosen.called[~chosen.forgotten].mean()),
            "on_targets": chosen.areas,
        }
    return found


def everything(plan: Any, settings: Settings) -> Iterator[tuple[str, Iterator[tuple[str, Tried]]]]:
    """Yield each setting with what it finds against each method, over models that are trained once."""
    data, store = data_of(plan.data.name, plan.data.root), Store(plan.compute.store)
    first = WorkerContext(KIND, cast("ApolloDesign", KIND.lay_out(plan, data, "cpu", store)), store)
    for job in first.design.jobs():
        read = job.stage in ("train", "unlearn") and first.design.member(job.member).role != "offline"
        if read and not store.has(job.stage, job.key):
            first.perform(job)
    for name, changes in settings.items():
        design = KIND.lay_out(plan.changed(changes) if changes else plan, data, "cpu", store)
        context = WorkerContext(KIND, design, store, first.lately)
        yield name, ((method, tried(context, method)) for method in METHODS)


@contextmanager
def fits_remembered() -> Iterator[None]:
    """Let equal fits be made once: a player's evidence holds one walk in both places."""
    plain, known = calibration.fit_logistic, dict[tuple[bytes, bytes], calibration.Fit]()

    def remembered(rows: Any, labels: Any) -> calibration.Fit:
        name = (rows.tobytes(), labels.tobytes())
        if name not in known:
            known[name] = plain(rows, labels)
        return known[name]

    calibration.fit_logistic = remembered
    try:
        yield
    finally:
        calibration.fit_logistic = plain


def tried(context: WorkerContext[Any], method: str) -> Tried:
    """Return what the attack finds of targets and of shadows in their place, by one setting against one method."""
    design, attack = context.design, ATTACKS[ATTACK]()
    parts: dict[str, list[Any]] = {name: [] for name in ("score", "forgotten", "called", "target")}
    selection = []
    for shadow_set, asked in enumerate(design.partition.candidates):
        shards = range(design.shards(shadow_set))
        jobs = [design.search_job(shadow_set, design.by_label[method], ATTACK, shard) for shard in shards]
        kind = KINDS[ATTACK]
        evidence = Evidence({ATTACK: kind.part.joined([kind().gather(case(context, job)) for job in jobs])})
        finding = attack.judge(evidence)
        with fits_remembered():
            selection.append(float(rehearsed(attack, evidence).auc.mean()))
        parts["score"].append(finding.score)
        parts["forgotten"].append(asked.forgotten)
        parts["called"].append(finding.decide(context.plan.audit.fpr[0]))
        parts["target"].append(asked.target)
    return Tried(**{name: np.concatenate(each) for name, each in parts.items()}, selection=selection)


def over_seeds(seeds: Sequence[Mapping[str, Any]], method: str) -> dict[str, Any]:
    """Return the means over seeds of one method; the interval is over seeds, whose means it takes over targets."""
    found = [seed[method] for seed in seeds]
    targets = np.array([each["on_targets"] for each in found])
    low, high = nested_t(targets) if len(found) > 1 else (None, None)
    return {
        "best_on_targets": fmean(each["best"]["auc"] for each in found),
        "best_significant": sum(claimed(each["best"]["auc"], each["best"]["auc_p"]) for each in found),
        "mean_of_all": fmean(each["mean_of_all"] for each in found),
        "at_selection": fmean(each["at_selection"] for each in found),
        "tuned": float(targets.mean()),
        "tuned_low": low,
        "tuned_high": high,
        "tuned_significant": sum(claimed(fmean(each["on_targets"]), each["auc_p"]) for each in found),
        "own": fmean(each["own"] for each in found),
        "found_fpr": fmean(each["found_fpr"] for each in found),
        "targets": int(targets.size),
    }


def claimed(area: float, p: float) -> bool:
    """Return whether a reader would take an AUC for a leak: above ½, and its two-sided p-value at most 5 %."""
    return area > 0.5 and p <= 0.05


def tables(record: Mapping[str, Any]) -> str:
    """Return the record as Markdown."""
    header = [
        "against",
        "best on the targets: AUC quoted",
        "above ½ with p ≤ .05",
        "`orch tune`: AUC at selection",
        "AUC on the targets [95 % over seeds]",
        "above ½ with p ≤ .05",
        "plan as it is",
        f"found FPR at {record['plan']['audit.fpr'][0]:g}",
    ]
    count = len(record["seeds"])
    rows = [
        [
            method,
            f"{each['best_on_targets']:.3f}",
            f"{each['best_significant']} of {count}",
            f"{each['at_selection']:.3f}",
            f"**{each['tuned']:.3f}**" + ("" if each["tuned_low"] is None else ends(each)),
            f"{each['tuned_significant']} of {count}",
            f"{each['own']:.3f}",
            f"{each['found_fpr']:.3f}",
        ]
        for method, each in record["methods"].items()
    ]
    facts = (
        f"{record['settings']} settings, {count} seed(s), {record['methods'][METHODS[0]]['targets']} targets in all, "
        f"{record['seconds']} s.\n"
    )
    return described(record) + "\n" + facts + "\n" + table(header, rows)


def ends(found: Mapping[str, Any]) -> str:
    """Return the interval of the tuned AUC."""
    return f" [{found['tuned_low']:.3f}, {found['tuned_high']:.3f}]"


if __name__ == "__main__":
    main()
