"""Experiments on Apollo (arXiv 2506.09923)."""

from __future__ import annotations

from typing import Any

from tune_spaces.registry import Sweep, sweep

SEARCH = "audit.search"


def ablation() -> dict[str, dict[str, Any]]:
    """Return one-at-a-time changes of β/α, m, ε and T around the base plan (α = 1, β = 4, m = 16, ε = .1, T = 5).

    ε varies at T = 5; T varies at the base's final radius ε·T = .5, so that it says what more steps add.
    """
    settings: dict[str, dict[str, Any]] = {"base": {}}
    settings |= {f"beta/alpha={ratio:g}": {f"{SEARCH}.beta": ratio} for ratio in (0.25, 1.0, 16.0)}
    settings |= {f"m={shadows}": {f"{SEARCH}.shadows": shadows} for shadows in (4, 8)}
    settings |= {f"epsilon={width:g}": {f"{SEARCH}.epsilon": width} for width in (0.02, 0.05, 0.2, 1.0)}
    settings |= {f"T={steps}": {f"{SEARCH}.steps": steps, f"{SEARCH}.epsilon": 0.5 / steps} for steps in (1, 10, 25)}
    return settings


ABLATION = sweep(
    Sweep(
        name="apollo-ablation",
        title="Apollo's β/α, m, ε and T on one shared population",
        base="apollo-fashion14",
        settings=ablation(),
        metric="apollo AUC",
        makes="Fig. 5 and Fig. 6 of arXiv 2506.09923",
    )
)


SEEDS = sweep(
    Sweep(
        name="apollo-seeds",
        title="The embedded default on seeds 0 to 4, fixed beforehand, and pooled",
        base="apollo-fashion14",
        settings={f"seed={seed}": {"seed": seed} for seed in range(5)},
        metric="apollo AUC",
        makes="the tables of docs/apollo.md",
        pooled=True,
    )
)
