"""Components as a user writes them, one file each, and the smallest plan that names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.engine.plan.base import BasePlan
from orchestrator.kinds import load_plan
from tests.cases.smallest_plans import APOLLO

NETS = '''"""Networks."""
import torch
from torch import nn

import scaling


class SmallNet(nn.Module):
    """Flatten, one hidden layer."""

    def __init__(self, shape, classes, width: int = 16, rates: tuple[float, ...] = (1.0, 1.0)):
        super().__init__()
        self.hidden = nn.LazyLinear(width)
        self.head = nn.Linear(width, classes)
        self.rate = rates[0]

    def forward(self, x):
        return self.head(torch.relu(self.hidden(x.view(len(x), -1)))) * scaling.SCALE


class Named(SmallNet):
    """Returns a dict."""

    def forward(self, x):
        return {"logits": super().forward(x), "inputs": x}


def built(classes, hidden: int = 8):
    """A function that builds."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, classes))
'''
SCALING = "SCALE = 1.0\n"
FORGETTING = '''"""An unlearning method."""
import torch

import rates


def forget(model, forget, retain, seed, factor: float = 0.5):
    """Shrink the head."""
    with torch.no_grad():
        for parameter in list(model.parameters())[-2:]:
            parameter.mul_(factor * rates.RATE)
'''
ATTACKING = '''"""An attack of Apollo."""
from dataclasses import dataclass

import numpy as np

from audits.apollo import Attack, Finding


@dataclass(frozen=True)
class Margin(Attack):
    """The posterior of the true class at the point."""

    access = "posteriors"
    reads = ("posteriors",)

    def find(self, evidence):
        seen = evidence.posterior()
        asked = np.arange(len(seen.labels))
        score = seen.target[asked, seen.labels].astype(np.float64)
        null = seen.shadow[:, asked, seen.labels][seen.outside].astype(np.float64)
        return Finding(score, null, seen.queries)
'''
FILES = {
    "nets.py": NETS,
    "scaling.py": SCALING,
    "forgetting.py": FORGETTING,
    "rates.py": "RATE = 1.0\n",
    "attacking.py": ATTACKING,
}


POINTS = '''"""Points of two classes."""
import numpy as np


def points():
    """Noise around two corners, as images of 8×8."""
    rng = np.random.default_rng(0)
    labels = np.arange(1600) % 4
    return rng.normal(labels[:, None, None, None] / 4, 0.3, (1600, 1, 8, 8)).astype(np.float32), labels
'''
ENTRY_POINTS = {
    "orch.models": {"small_net": "mine.nets:SmallNet"},
    "orch.data": {"corners": "mine.points:points"},
    "orch.unlearners": {"shrink": "mine.forgetting:forget"},
    "orch.attacks": {"apollo.margin": "mine.attacking:Margin"},
}


def write_components(folder: Path) -> None:
    """Leave the files of all components in ``folder``."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


def write_package(folder: Path) -> None:
    """Leave the same components as a package ``mine`` in ``folder``, with a data set."""
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "__init__.py").write_text("")
    for name, text in {**FILES, "points.py": POINTS}.items():
        for module in ("scaling", "rates"):
            text = text.replace(f"import {module}", f"from mine import {module}")
        (folder / "mine" / name).write_text(text)


def write_metadata(folder: Path, entry_points: Mapping[str, Mapping[str, str]], name: str = "mine") -> None:
    """Let the package in ``folder`` pass for an installed one that offers ``entry_points``."""
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, entries in entry_points.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (place / "entry_points.txt").write_text("\n".join(lines) + "\n")


def edit(file: Path, old: str, new: str) -> None:
    """Replace ``old`` by ``new`` in ``file``."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def own_values(store: Path, **values: Any) -> dict[str, Any]:
    """Return what ``own_plan`` changes in the shipped plan."""
    return {
        **{name: value for name, value in APOLLO.items() if not name.startswith("unlearning.")},
        "audit.attacks": ["loss_threshold", "python:attacking:Margin"],
        "unlearning": [{"method": "gradient_ascent", "epochs": 1}, {"method": "python:forgetting:forget"}],
        "model": {"name": "python:nets:SmallNet", "settings": {}},
        "compute.workers": 0,
        "compute.store": str(store),
        **values,
    }


def own_plan(store: Path, **values: Any) -> BasePlan:
    """Return the smallest plan of Apollo with a network, a method and an attack of one's own, for this process."""
    return load_plan("apollo-smoke", values=own_values(store, **values))
