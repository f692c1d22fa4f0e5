"""A small plan of each kind, for runs that are disturbed; enough jobs that some are left when a fault comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, OF_TARGETS, load_plan
from tests.cases.runs import audited

SMALL: dict[str, dict[str, Any]] = {
    "apollo": {
        "split.targets": 2,
        "audit.fpr": [0.5],
        "recipe.epochs": 40,
        "split.shadows": 4,
        "split.train_size": 100,
        "split.target_pool": 200,
    },
    "tmia": {
        "split.targets": 4,
        "split.reference_models": 12,
        "split.null_models": 2,
        "audit.asked": 12,
        "audit.reconstruction.models": 2,
        "recipe.epochs": 4,
        "compute.chunk": 8,
        "variants": {},
    },
    "gnq": {"split.pools": 2, "split.shadows": 4, "recipe.epochs": 2, "defences.3.recipe.epochs": 2},
    "mia": {"split.pools": 3, "audit.fpr": [0.2], "audit.hop_skip_jump.points": 20, "recipe.epochs": 4},
}
assert {*SMALL} == {*KINDS} - {*OF_TARGETS.values()}  # kinds of given models train nothing that could be disturbed


def small_plan(kind: str, store: Path, workers: int | str = 0, **compute: str) -> BasePlan:
    values = {"compute.store": str(store), "compute.workers": workers}
    values |= {f"compute.{name}": value for name, value in compute.items()}
    return load_plan(f"{kind}-smoke", values={**SMALL[kind], **values})


def scores(plan: BasePlan, out: Path) -> bytes:
    audited(plan, out)
    return (out / "scores.parquet").read_bytes()


def trained(tmp_path: Path) -> int:
    return len(Store(tmp_path / "store").keys("train"))
