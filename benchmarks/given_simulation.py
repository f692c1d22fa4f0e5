"""Verdicts on given models held against the truth: models of a plain training loop, with right and wrong lists.

    python -m benchmarks.given_simulation --out FOLDER                   # all scenarios, fits and seeds; goes on
    python -m benchmarks.given_simulation --out FOLDER --kinds mia --scenarios honest brighter --seeds 3
    python -m benchmarks.given_simulation --out FOLDER --table           # of what is in FOLDER, without a run

Each run makes a data set, trains a model by a loop that knows nothing of this project, writes its weights and lists,
and gives them to the command ``orch audit KIND plan.yaml``. What is true is known: who was trained on. A *false leak*
is the verdict “leak” on a list of which nobody was trained on; a *false reassurance* “no leak seen” of an over-fitted
model of which all members were listed. The folder keeps a line for each run, so that a call goes on where one ended.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from audits.data.catalogue import load
from audits.statistics.intervals import clopper_pearson
from benchmarks.given_lists import LISTED, SCENARIOS, Images, Labels, Points, drawn
from benchmarks.record import table
from orchestrator.cli.main import main as command

SEED = 4711
"""Fixed before any run of this script; ``--second`` begins at another, to be looked at once."""
SECOND = 90210
LEVEL = 0.95
LEAK, NONE_SEEN = "leak", "no leak seen"
KINDS: Mapping[str, Mapping[str, Any]] = {
    "mia": {
        "audit": {"kind": "mia", "fpr": [0.05], "attacks": ["lira", "rmia", "loss", "label_gap"], "permutations": 400},
        "split": {"train_size": 400, "shadows": 16, "test": 500},
    },
    "tmia": {
        "audit": {"kind": "tmia", "asked": 100, "reference_samples": 2000},
        "split": {
            "candidates": 600, "train_size": LISTED, "attacker_points": 2500, "filler": 900, "reference_models": 40,
            "null_models": 4,
        },
    },
    "gnq": {"audit": {"kind": "gnq"}},
}  # fmt: skip
FITS: Mapping[str, Mapping[str, Any]] = {
    "over-fitted": {"learning_rate": 0.003, "epochs": 45},
    "well fitted": {"learning_rate": 0.001, "epochs": 6},
    "fits nothing": {"learning_rate": 0.0001, "epochs": 1},
}
HIDDEN, BATCH = 128, 50


@dataclass(frozen=True)
class Case:
    """One run: what is audited, how the model fits, which lists come with it, and the seed of all draws."""

    kind: str
    scenario: str
    fit: str
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came of a case: the verdict, the controls that failed, and the AUC of the verdict's attack with its ends."""

    case: Case
    level: str
    failed: tuple[str, ...]
    auc: float | None
    low: float | None
    high: float | None
    own: float | None
    code: int
    seconds: float


@cache
def images() -> tuple[Images, Labels]:
    """Return all images in [0, 1] and their labels."""
    x, y = load("fashion14").tensors(range(70_000)).all()
    return x.numpy().astype(np.float32), y.numpy().astype(np.int64)


def train(points: Points, recipe: Mapping[str, Any], file: Path, seed: int) -> None:
    """Train a network as anybody might, and leave its weights; nothing of this project takes part."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(seed)
    x, y = torch.from_numpy(points.x[points.trained]), torch.from_numpy(points.y[points.trained])
    net = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))
    optimiser = torch.optim.Adam(net.parameters(), recipe["learning_rate"])
    for _ in range(max(1, round(recipe["epochs"] * points.epochs))):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimiser.step()
    torch.save(net.state_dict(), file)


def plan_of(case: Case, folder: Path) -> dict[str, Any]:
    """Return the plan of a case, whose files lie in ``folder``."""
    target = {"weights": str(folder / "weights.pt"), "members": str(folder / "members.txt")}
    if case.kind != "gnq":
        target["non_members"] = str(folder / "others.txt")
    recipe = {"optimizer": "adam", "weight_decay": 0.0, "batch_size": BATCH, **FITS[case.fit]}
    return {
        **KINDS[case.kind],
        "data": {"name": f"npz:{folder / 'points.npz'}"},
        "model": {"name": "mlp", "settings": {"hidden": [HIDDEN]}},
        **({} if case.kind == "gnq" else {"recipe": recipe}),
        "target": target,
        "compute": {"workers": 0, "store": str(folder / "store")},
    }


def carried_out(case: Case) -> Outcome:
    """Make the data, the model and the lists of a case, audit it by the command, and return what came of it."""
    begin = time.perf_counter()
    points = drawn(*images(), case.seed)
    SCENARIOS[case.scenario].change(points, np.random.default_rng([case.seed, 1]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        np.savez(folder / "points.npz", x=points.x, y=points.y)
        for name, ids in (("members", points.members), ("others", points.others)):
            (folder / f"{name}.txt").write_text("".join(f"{point}\n" for point in ids))
        train(points, FITS[case.fit], folder / "weights.pt", case.seed)
        (folder / "plan.yaml").write_text(yaml.safe_dump(plan_of(case, folder)))
        plan, out = str(folder / "plan.yaml"), str(folder / "out")
        words = ["audit", case.kind, plan, "--out", out, "--quiet", "--no-pictures", "--set", "tracking.uri=null"]
        code = command([*words, "--fail-above", "auc=0.6"])
        document = json.loads((folder / "out" / "result.json").read_text())
    return outcome_of(case, document, code, time.perf_counter() - begin)


def outcome_of(case: Case, document: Mapping[str, Any], code: int, seconds: float) -> Outcome:
    """Return what a result says."""
    verdict = document["verdict"]
    failed = tuple(each["name"] for each in verdict["controls"] if each["state"] == "failed")
    nothing: dict[str, Any] = {}
    found = max(verdict["findings"], key=lambda each: each["value"] or 0.0, default=nothing)
    own = next((row["auc"] for row in document.get("own", ()) if row["attack"] == found.get("attack")), None)
    auc, low, high = (found.get(name) for name in ("value", "low", "high"))
    return Outcome(case, verdict["level"], failed, auc, low, high, own, code, round(seconds, 1))


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases that are asked for, seed by seed; a fit matters where the lists are right."""
    for number in range(options.seeds):
        for kind in options.kinds:
            for scenario in options.scenarios:
                for fit in FITS if scenario == "honest" else ("over-fitted", "well fitted"):
                    yield Case(kind, scenario, fit, (SECOND if options.second else SEED) + number)


def done(file: Path) -> list[Outcome]:
    """Return what a folder holds already."""
    lines = file.read_text().splitlines() if file.is_file() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return [Outcome(**{**row, "case": Case(**row["case"]), "failed": tuple(row["failed"])}) for row in rows]


def share(count: int, total: int) -> str:
    """Return a share with its interval."""
    if not total:
        return "–"
    low, high = clopper_pearson(count, total, LEVEL)
    return f"{count} of {total} [{low:.2f}, {high:.2f}]"


def summary(found: Iterable[Outcome]) -> str:
    """Return the table of all kinds, scenarios and fits: how often each verdict came, and which controls failed."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for each in found:
        groups.setdefault((each.case.kind, each.case.scenario, each.case.fit), []).append(each)
    rows = []
    for (kind, scenario, fit), some in sorted(groups.items()):
        levels = [each.level for each in some]
        controls = [name for each in some for name in each.failed]
        names = ", ".join(f"{name} {controls.count(name)}" for name in dict.fromkeys(controls))
        aucs = [each.auc for each in some if each.auc is not None]
        told = f"{np.mean(aucs):.3f}" if aucs else "–"
        counts = [str(levels.count(level)) for level in (LEAK, "cannot be told", NONE_SEEN)]
        rows.append([kind, scenario, SCENARIOS[scenario].truth, fit, str(len(some)), *counts, told, names])
    head = ["audit", "lists", "trained on", "fit", "runs", "leak", "cannot be told", "no leak seen", "AUC", "failed"]
    return table(head, rows)


def errors(found: Sequence[Outcome]) -> list[str]:
    """Return the error rates over all runs, with their intervals, a line each."""
    lines = []
    for kind in dict.fromkeys(each.case.kind for each in found):
        own = [each for each in found if each.case.kind == kind]
        nobody = [each for each in own if SCENARIOS[each.case.scenario].truth == "nobody"]
        honest = [each for each in own if each.case.scenario == "honest"]
        fitted = [each for each in own if each.case.fit == "over-fitted" and each.case.scenario not in ("shorter",)]
        all_listed = [each for each in fitted if SCENARIOS[each.case.scenario].truth == "members"]
        sure = [each for each in honest if each.case.fit == "over-fitted"]
        lines += [
            f"{kind}: false leaks {share(sum(each.level == LEAK for each in nobody), len(nobody))}",
            f"{kind}: false reassurance {share(sum(each.level == NONE_SEEN for each in all_listed), len(all_listed))}",
            f"{kind}: honest leaks found {share(sum(each.level == LEAK for each in sure), len(sure))}",
            f"{kind}: cannot be told of honest lists "
            f"{share(sum(each.level not in (LEAK, NONE_SEEN) for each in honest), len(honest))}",
        ]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and print the table; see the module's text. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.given_simulation", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of what is found; a later call goes on")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=["mia"])
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each scenario and fit")
    parser.add_argument("--second", action="store_true", help="seeds that are looked at once, after all is decided")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--table", action="store_true", help="print what is there, and run nothing")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "outcomes.jsonl"
    found = done(file)
    asked = list(cases(options))
    missing = [case for case in asked if case not in {each.case for each in found}]
    if missing and not options.table:
        for each in in_processes(missing, options.workers):
            with file.open("a") as stream:
                stream.write(json.dumps(asdict(each)) + "\n")
            found.append(each)
            print(f"{len(found)}: {each.case} {each.level} {each.seconds:.0f} s", file=sys.stderr, flush=True)
    chosen = [each for each in found if each.case in asked]
    print("\n".join([summary(chosen), "", *errors(chosen)]))
    return 0


def in_processes(some: Sequence[Case], workers: int) -> Iterator[Outcome]:
    """Yield outcomes as they come, of so many processes."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(carried_out, case) for case in some]):
            yield future.result()


if __name__ == "__main__":
    sys.exit(main())
