"""The smallest plans of each kind that run; together they have jobs of every stage and name nearly all attacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from audits.apollo.attacks.base import ATTACKS
from audits.models import make_model
from audits.tmia.attacks.base import ATTACKS as TMIA_ATTACKS
from audits.tmia.selectors.base import SELECTORS
from orchestrator.engine.plan.base import BasePlan
from orchestrator.kinds import load_plan

APOLLO: dict[str, Any] = {
    "split.targets": 1,
    "split.train_size": 60,
    "split.forget": 0.5,
    "split.target_pool": 120,
    "split.candidates": {"forget": 12, "unseen": 20},
    "split.shadows": 4,
    "recipe.epochs": 1,
    "unlearning.1.epochs": 1,
    "audit.fpr": [0.5],
}
TMIA: dict[str, Any] = {
    "split.targets": 2,
    "split.null_models": 1,
    "split.overfitted_models": 2,
    "audit.asked": 8,
    "audit.reference_samples": 40,
    "audit.reconstruction": {"points": 6, "models": 2},
    "recipe.epochs": 2,
    "transfer.n_frozen": 0,
}
GNQ: dict[str, Any] = {
    "data.name": "fashion14",
    "split": {"pools": 2, "train_size": 20, "shadows": 4, "test": 40},
    "model.settings.hidden": [8],
    "recipe": {"learning_rate": 0.01, "epochs": 2, "batch_size": 10},
    "audit.checkpoints": 1,
    "audit.bins": 2,
    "audit.inversion": {"images": 1, "steps": 2, "starts": 1, "learning_rate": 0.05, "tv": 0.05, "spread": 0.2},
    "audit.gradient_inversion": {"points": 4, "batches": [1, 2], "methods": ["analytic", "dlg", "geiping"], "steps": 2},
}
MIA: dict[str, Any] = {
    "audit.hop_skip_jump.points": 20,
    "audit.fpr": [0.2],
    "split": {
        "pools": 3, "train_size": 20, "shadows": 4, "strangers": 2, "null_models": 2, "canaries": 4, "test": 40,
    },
    "model.settings.hidden": [8],
    "recipe.epochs": 2,
}  # fmt: skip
REMOVAL = {"method": "remove", "ranking": "gnq_log", "share": 0.2}
ALL_DEFENCES: list[dict[str, Any]] = [
    REMOVAL,
    {"method": "remove", "ranking": "random", "share": 0.2},
    {"method": "noise", "ranking": "gnq_log", "share": 0.2, "strength": 1.0},
    {
        "method": "dp_sgd",
        "recipe": {"learning_rate": 0.01, "epochs": 2, "batch_size": 10, "noise_multiplier": 1.0, "max_grad_norm": 1.0},
    },
]
SMALLEST: dict[str, tuple[str, dict[str, Any]]] = {
    "apollo": (
        "apollo-smoke",
        {**APOLLO, "audit.attacks": list(ATTACKS), "audit.radii": True, "audit.disclosure": True},
    ),
    "apollo, exposed points": (
        "apollo-smoke",
        {**APOLLO, "audit.attacks": ["single_query"], "split.points": "exposed", "split.ranking_models": 1},
    ),
    "apollo, memorised points": (
        "apollo-smoke",
        {**APOLLO, "audit.attacks": ["single_query"], "split.points": "memorised", "split.ranking_models": 4},
    ),
    "tmia": (
        "tmia-smoke",
        {**TMIA, "variants": {}, "audit.attacks": list(TMIA_ATTACKS), "audit.selectors": list(SELECTORS)},
    ),
    "gnq": ("gnq-smoke", {**GNQ, "defences": ALL_DEFENCES}),
    "mia": ("mia-smoke", MIA),
    "gnq, looks apart": (
        "gnq-smoke",
        {
            **GNQ,
            "audit.attacks": ["loss"],
            "audit.looks": "apart",
            "audit.inversion": None,
            "audit.gradient_inversion": None,
            "defences": [REMOVAL],
        },
    ),
    "gnq, given": (
        "gnq-target",
        {"model.settings.hidden": [8], "target.members": "0:12", "audit.controls": 4, "audit.modes": ["ridge", "pinv"]},
    ),
}

GIVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "apollo, given": (
        "apollo-smoke",
        {
            **APOLLO,
            "audit.attacks": ["single_query", "u_lira"],
            "split.shadows": 8,
            "model.settings.hidden": [8],
            "target": {"members": "0:60", "forget": "0:30"},
        },
    ),
    "tmia, given": (
        "tmia-smoke",
        {
            **TMIA,
            "variants": {},
            "audit.attacks": ["label_gap", "tmia_posterior"],
            "audit.selectors": ["none"],
            "model": {"name": "mlp", "settings": {"hidden": [8]}},
            "target": {"members": "0:200"},
        },
    ),
    "mia, given": (
        "mia-smoke",
        {
            "audit.fpr": [0.5],
            "audit.attacks": ["lira", "label_gap"],
            "split": {"train_size": 20, "shadows": 6, "test": 40},
            "model.settings.hidden": [8],
            "recipe.epochs": 2,
            "target": {"members": "0:30"},
        },
    ),
}
"""Plans of kinds that audit a given model by the plan that otherwise trains targets."""


def given_weights(folder: Path, shape: tuple[int, ...]) -> str:
    """Write the weights of a network that nobody trained, of the architecture of the plans of given models."""
    folder.mkdir(exist_ok=True)
    file = folder / f"weights-{shape[-1]}.pt"
    torch.save(make_model("mlp", {"hidden": [8]}).build(shape, 10, seed=0).state_dict(), file)
    return str(file)


def smallest_plan(name: str, store: Path, **more: Any) -> BasePlan:
    """Return the plan ``name`` of ``SMALLEST`` or ``GIVEN``, for work in this process."""
    base, values = (SMALLEST | GIVEN)[name]
    if "given" in name:
        shape = (1, 14, 14) if base == "gnq-target" else (1, 8, 8)
        values = values | {"target.weights": given_weights(store.with_name(f"{store.name}-given"), shape)}
    return load_plan(base, values={**values, "compute.workers": 0, "compute.store": str(store), **more})
