"""Components as a user writes them, one file each, and the smallest plan that names them."""

from __future__ import annotations

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
FILES = {"nets.py": NETS, "scaling.py": SCALING}


def write_components(folder: Path) -> None:
    """Leave the files of all components in ``folder``."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


def edit(file: Path, old: str, new: str) -> None:
    """Replace ``old`` by ``new`` in ``file``."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def own_plan(store: Path, **values: Any) -> BasePlan:
    """Return the smallest plan of Apollo with a network of the user's own, for work in this process."""
    given = {
        **APOLLO,
        "audit.attacks": ["apollo", "loss_threshold"],
        "model": {"name": "python:nets:SmallNet", "settings": {}},
        "compute.workers": 0,
        "compute.store": str(store),
    }
    return load_plan("apollo-smoke", values={**given, **values})
