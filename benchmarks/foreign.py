"""Models that somebody else trained and unlearned, audited as they are: do promised rates hold?

    python -m benchmarks.foreign                      # fifty models, every audit; about 100 min of one core
    python -m benchmarks.foreign mia --models 10      # one audit, ten models
    python -m benchmarks.foreign --quick              # shows that it works; the numbers mean little

``examples/somebody_elses.py`` makes each model by a loop of its own, which members it has is drawn by its seed, and who
was trained on and who was not is known. Each is audited by a plan of ``examples/theirs-*.yaml``, once with shadows that
are trained as the script trains (matched), once with shadows that are trained for a third of the epochs (mismatched).
Rates are those of known non-members; the interval of their mean is over models (Ibragimov and Müller's t), and ``void``
counts the audits that withdrew the promise themselves.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import yaml

from audits.data.catalogue import load
from audits.statistics.intervals import ibragimov_mueller_t
from benchmarks.record import table
from orchestrator.api.report import Report
from orchestrator.api.runs import audit
from orchestrator.engine.run.run import Run

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPT = EXAMPLES / "somebody_elses.py"
KINDS = ("mia", "tmia", "apollo")
POINTS = 20_000
FIRST_SEED = 1700
"""Fixed before any run of this script, as the number of models was."""
SMALLER: Mapping[str, Mapping[str, Any]] = {
    "mia": {"split": {"shadows": 8}},
    "tmia": {"audit": {"asked": 100}, "split": {"reference_models": 24}},
    "apollo": {},
}
"""What is changed in the examples' plans, so that fifty models take an hour."""
MISMATCHED = 10
"""Epochs of shadows in the place of 30."""


def main() -> int:
    """Make the models, audit them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND")
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="seed of the first model")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--out", type=Path, default=None, help="folder of models, stores and results; finished audits stay"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        images = write_images(folder)
        rows: list[dict[str, Any]] = []
        for seed in range(chosen.first, chosen.first + (2 if chosen.quick else chosen.models)):
            theirs = made(images, folder / f"theirs-{seed}", seed)
            for kind in chosen.kinds:
                for shadows in ("matched", "mismatched"):
                    rows += audited(kind, shadows, theirs, images, folder, seed)
            print(f"model {seed} is done", file=sys.stderr, flush=True)
    lines = list(summed_up(rows))
    print(table(list(lines[0]), [list(line.values()) for line in lines]))
    return 0


def write_images(folder: Path) -> Path:
    """Write the first points of the embedded images as anybody would keep them."""
    file, data = folder / "images.npz", load("fashion14")
    if not file.is_file():
        np.savez(file, inputs=data.inputs[:POINTS], labels=data.labels[:POINTS])
    return file


def made(images: Path, folder: Path, seed: int) -> Path:
    """Run the script, in this process, unless it has run."""
    if not (folder / "forget.txt").is_file():
        with patch.object(sys, "argv", [str(SCRIPT), str(images), "--seed", str(seed), "--out", str(folder)]):
            runpy.run_path(str(SCRIPT), run_name="__main__")
    return folder


def plan_of(kind: str, shadows: str, theirs: Path, images: Path, seed: int) -> dict[str, Any]:
    """Return the plan of an example, for the files of one model, with as few models as the audit can do with."""
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / f"theirs-{kind}.yaml").read_text(encoding="utf-8"))
    found["data"]["name"] = f"npz:{images}"
    found["target"] = {
        name: str(theirs / Path(value).name) if str(value).startswith("theirs/") else value
        for name, value in found["target"].items()
    }
    for section, changes in SMALLER[kind].items():
        found[section] = {**found.get(section, {}), **changes}
    if shadows == "mismatched":
        found["recipe"]["epochs"] = MISMATCHED
    return {**found, "seed": seed}


@contextmanager
def untracked() -> Iterator[None]:
    """Leave out pages and MLflow, which would take as long as the audits."""
    with (
        patch.object(Run, "track", lambda run, document: None),
        patch.object(Run, "report", lambda run, document: None),
        patch.object(Run, "watch", lambda run, settings, left, **how: None),
    ):
        yield


def audited(kind: str, shadows: str, theirs: Path, images: Path, folder: Path, seed: int) -> list[dict[str, Any]]:
    """Return what the audit of one model says of each attack on that model, a row a promised rate."""
    out = folder / f"{kind}-{shadows}-{seed}"
    if not (out / "result.json").is_file():
        with untracked():
            audit(plan_of(kind, shadows, theirs, images, seed), store=folder / "store", out=out, quiet=True, force=True)
    place = {"kind": kind, "shadows": shadows, "seed": seed}
    return [{**place, **numbers_of(row)} for row in Report(out).table if about_the_target(row)]


def about_the_target(row: Mapping[str, Any]) -> bool:
    """Say whether a row is about the given model, and about all candidates: not about a control, or a selection."""
    return row.get("unlearner") not in ("identity", "retrain") and row.get("selection", "none") == "none"


def numbers_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a row by one set of names for all audits."""
    of_tmia = "beta" in row
    promised, found, power = ("beta", "fpr", "coverage") if of_tmia else ("promised_fpr", "found_fpr", "tpr")
    return {
        "attack": row["attack"],
        "promised": None if of_tmia and row["expected_false_positives"] is None else row[promised],
        "found": row[found],
        "holds": row[f"{found}_low"] <= row[promised] <= row[f"{found}_high"],
        "power": row[power],
        "auc": row["auc"],
        "void": row["fpr_off"] or row["null_fpr_off"] if of_tmia else row["void"],
    }


def summed_up(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield a line for each audit, kind of shadows and attack: means over models with their intervals."""
    for place in dict.fromkeys((row["kind"], row["shadows"], row["attack"]) for row in rows):
        own = [row for row in rows if (row["kind"], row["shadows"], row["attack"]) == place]
        yield {
            "audit": place[0],
            "shadows": place[1],
            "attack": place[2],
            "promised": "nothing" if own[0]["promised"] is None else f"{own[0]['promised']:g}",
            "found": over_models([row["found"] for row in own]),
            "interval holds the promise": "-"
            if own[0]["promised"] is None
            else f"{sum(row['holds'] for row in own)} of {len(own)}",
            "void": str(sum(bool(row["void"]) for row in own)),
            "members called": over_models([row["power"] for row in own]),
            "AUC": over_models([row["auc"] for row in own]),
        }


def over_models(values: Sequence[float | None]) -> str:
    """Return the mean of one number a model, with its interval over models."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return "-"
    low, high = ibragimov_mueller_t(known, 0.95)
    return f"{np.mean(known):.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    sys.exit(main())
