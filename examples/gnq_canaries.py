"""Ranks of planted canaries by each score of exposure: why ridge is the default and diagonal stands beside it.

python examples/gnq_canaries.py                          # 5 seeds, about a minute on one core
python examples/gnq_canaries.py --seeds 1 --points 300   # a look, in seconds

Of each seed: points of fashion14 of which four are canaries (every image has its first 2 × 2 pixels zeroed, but for the
canary that uses nothing else), an MLP with hidden layers of 128 and 128, and what is seen of all points on the way.
Printed: a Markdown table of the canaries' ranks, median over seeds and, in brackets, the lowest and the highest.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from statistics import fmean, median

from audits.data import load
from audits.gnq import CANARIES, canary_ranks, planted
from audits.models import make_model
from audits.seeds import derive_seed, numpy_generator
from audits.training import Recipe, accuracy
from audits.uniqueness import MODES, Trace, fit_traced, steps_of

CORNER = 2  # pixels a side
ACCUMULATED = {
    "gnq_log": "ridge, Σ ½·log2(1 + GNQ)",
    "gnq_sum": "ridge, Σ GNQ",
    "diagonal": "diagonal, Σ ½·log2(1 + D)",
    "pinv_log": "pinv, Σ ½·log2(1 + GNQ)",
    "pinv_sum": "pinv, Σ GNQ",
    "gradient_norm_log": "Σ log2(1 + ‖g‖²)",
    "gradient_norm_sum": "Σ ‖g‖²",
    "loss_log": "Σ log2(1 + loss)",
    "loss_sum": "Σ loss",
}
ONE_MODEL = {
    "gnq_final": "ridge",
    "diagonal_final": "diagonal",
    "pinv_final": "pinv",
    "gradient_norm": "‖g‖²",
    "final_loss": "loss",
}

Ranks = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Run:
    """What one seed gave: ranks along training, at the first checkpoint after the start, and of the trained model."""

    along: Ranks
    early: Ranks
    step: int  # of the early model
    accuracy: float  # on the training points
    doubts: int  # checkpoints at which the rank behind mode pinv is not certain


def run(seed: int, points: int, recipe: Recipe, checkpoints: int) -> Run:
    """Train on points and canaries, look at them along the way, and rank."""
    data = load("fashion14")
    rows = numpy_generator(derive_seed(seed, "points")).choice(len(data), points, replace=False)
    training, canaries = planted(data.tensors(rows), CANARIES, seed, corner=CORNER)
    every = max(1, steps_of(recipe, points) // checkpoints)

    model = make_model("mlp", {}).build(data.shape, len(data.classes), derive_seed(seed, "init"))
    trace = fit_traced(model, training, recipe, seed=derive_seed(seed, "fit"), every=every, modes=MODES)
    along, early = (canary_ranks(only(trace, moments), canaries, seed) for moments in (slice(None), slice(1, 2)))
    return Run(along, early, int(trace.steps[1]), accuracy(model, training), sum(map(bool, trace.doubts)))


def only(trace: Trace, moments: slice) -> Trace:
    """Return what was seen at some checkpoints."""
    return replace(
        trace,
        steps=trace.steps[moments],
        loss=trace.loss[moments],
        squared_norm=trace.squared_norm[moments],
        gnq={mode: gnq[moments] for mode, gnq in trace.gnq.items()},
        doubts=trace.doubts[moments],
    )


def table(runs: list[Run]) -> str:
    """Return the ranks of all seeds as a Markdown table."""
    along, early = [run.along for run in runs], [run.early for run in runs]
    blocks = (
        ("along training", ACCUMULATED, along),
        (f"after {runs[0].step} steps", ONE_MODEL, early),
        ("trained model", ONE_MODEL, along),
    )
    names = " | ".join(kind.replace("_", " ") for kind in CANARIES)
    lines = [f"| seen | score | {names} |", "|---|---|" + "---:|" * len(CANARIES)]
    for seen, scores, found in blocks:
        for score, words in scores.items():
            cells = [[ranks[score][kind] for ranks in found] for kind in CANARIES]
            texts = [f"{median(each):.0f} ({min(each):.0f}–{max(each):.0f})" for each in cells]
            lines.append(f"| {seen} | {words} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> list[Run]:
    """Train, rank and print; return what every seed gave."""
    parser = argparse.ArgumentParser(description="Ranks of planted canaries by every score of exposure.")
    parser.add_argument("--seeds", type=int, default=5, help="how many runs (default 5)")
    parser.add_argument("--points", type=int, default=1000, help="training points, canaries included (default 1000)")
    parser.add_argument("--epochs", type=int, default=30, help="of training (default 30)")
    parser.add_argument("--checkpoints", type=int, default=8, help="looks beside the first (default 8)")
    options = parser.parse_args(arguments)
    recipe = Recipe(epochs=options.epochs, batch_size=50)
    runs = [run(seed, options.points, recipe, options.checkpoints) for seed in range(options.seeds)]
    print(table(runs))
    print(
        f"\n{options.points} points, {options.epochs} epochs, seeds {options.seeds}; training accuracy "
        f"{fmean(run.accuracy for run in runs):.3f}; checkpoints with a doubtful rank in mode pinv: "
        f"{sum(run.doubts for run in runs)}"
    )
    return runs


if __name__ == "__main__":
    main()
