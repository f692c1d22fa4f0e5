"""Each audit carried out under the null hypothesis, and what must hold of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.null_checks import Check, Found, area, ends, exposed, rate
from benchmarks.null_kinds import APOLLO, GNQ, MIA, TMIA
from orchestrator.engine.kind import Kind, Tuning
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.run import Run
from orchestrator.engine.run.standing import Left
from orchestrator.engine.setting import Setting
from orchestrator.judgement.gate import gates_of, judge_gates
from orchestrator.judgement.gate_result import INCONCLUSIVE, PASSED
from orchestrator.kinds import load_plan

RATES = (0.01, 0.05, 0.1)

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
    "mia": {"split.canaries": 0, "audit.fpr": list(RATES)},
}
QUICK: Mapping[str, Mapping[str, Any]] = {
    "apollo": {},
    "tmia": {"variants": {}},
    "gnq": {"split.pools": 4, "split.test": 500},
    "mia": {"split.canaries": 0, "split.null_models": 2},
}
LIMITS = {
    "apollo": ("labels.auc=0.6", "posteriors.auc=0.6"),
    "tmia": ("labels.auc_low=0.6", "precision_low=0.6"),
    "gnq": ("auc=0.6", "posteriors.auc=0.6"),
    "mia": ("labels.auc=0.6", "posteriors.auc=0.6"),
}


class Untracked(Run):
    """A run that leaves plan, result and scores, without page and tracking."""

    def report(self, document: Mapping[str, Any]) -> None:
        """Draw nothing."""

    def watch(self, settings: Sequence[Setting], left: Left, what: str = "", tuning: Tuning | None = None) -> None:
        """Log nothing while the run goes on."""

    def track(self, document: dict[str, Any]) -> None:
        """Log nothing."""


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
    gate = judge_gates(gates_of(LIMITS[kind.name], kind.headline, plan), kind.headline, plan, document)
    allowed = {PASSED} if kind is not MIA else {PASSED, INCONCLUSIVE}  # it has no canaries, so no limit can be passed
    return plan, document, [limit.sentence() for limit in gate.limits if limit.outcome not in allowed]


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


def null_mia(out: Path, seed: int, workers: Any, quick: bool) -> Found:
    """Return what attacks on membership find of targets that saw no point of their pool, and of null models."""
    _, document, gates = carried_out(MIA, "mia", out, seed, workers, quick)
    rows = document["table"]
    checks = [area(row, "auc", "AUC", row["pools"]) for row in rows if row["promised_fpr"] == rows[0]["promised_fpr"]]
    for row in rows:
        for metric, whom in (("tpr", "passed for members"), ("found_fpr", "the others"), ("null_fpr", "null models")):
            what = f"called members, {whom}, at {row['promised_fpr']:g}"
            checks.append(rate(row, metric, what, row["promised_fpr"], row["pools"]))
    bounds = [row for row in document["epsilons"] if row["epsilon"] > 0]
    broken = [f"the bound on ε is {row['epsilon']:.3f} ({row['attack']}, share {row['share']:g})" for row in bounds]
    named = sum(row["discoveries"] for row in document["discoveries"] if row["attack"] == document["judge"])
    total = f"{len(document['epsilons'])} rows of bounds on ε, {len(bounds)} above 0."
    return Found(tuple(checks), (*broken, *exposed(named), *gates), total)


AUDITS = {"apollo": null_apollo, "tmia": null_tmia, "gnq": null_gnq, "mia": null_mia}
