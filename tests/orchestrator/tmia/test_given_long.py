"""Given models whose truth is known: the promised rate over trainings, and a ResNet-18 with a student of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audits.data.catalogue import load
from audits.training.fit import train_model
from orchestrator.engine.plan.base import BasePlan
from orchestrator.kinds import check_against_data, load_plan
from tests.cases.foreign_models import trained_elsewhere
from tests.cases.runs import audited

pytestmark = pytest.mark.long

NETS = '''
"""A ResNet-18 of torchvision that repeats the one channel of grey images."""

from torchvision.models.resnet import BasicBlock, ResNet


class Grey(ResNet):
    def forward(self, x):
        return super().forward(x.expand(-1, 3, -1, -1))


def resnet18(classes: int = 1000):
    return Grey(BasicBlock, [2, 2, 2, 2], num_classes=classes)
'''


def save_one_of_its_recipe(plan: BasePlan, file: Path, seed: int) -> None:
    architecture, points = plan.model.architecture(), load("digits").tensors(range(100))
    own = train_model(lambda init: architecture.build((1, 8, 8), 10, init), points, plan.recipe, seed)
    torch.save(own.state_dict(), file)


def test_the_promised_rate_is_kept_on_non_members_of_targets_of_the_same_recipe(tmp_path: Path) -> None:
    """Targets differ in their training alone, so that all audits share their reference and null models."""
    rates, powers, found = [], [], []
    for seed in range(12):
        values: dict[str, Any] = {
            "variants": {},
            "compute.workers": 0,
            "compute.store": str(tmp_path / "store"),
            "split": {"reference_models": 39, "null_models": 6, "candidates": 160, "train_size": 100,
                      "attacker_points": 1200, "filler": 300},
            "target": {"weights": str(tmp_path / f"{seed}.pt"), "members": "0:100"},
            "audit.asked": 20,
            "audit.reference_samples": 60,
            "audit.attacks": ["tmia_posterior", "rmia"],
            "audit.selectors": ["none"],
        }  # fmt: skip
        plan = load_plan("tmia-smoke", values=values)
        save_one_of_its_recipe(plan, tmp_path / f"{seed}.pt", 1000 + seed)
        document = audited(plan, tmp_path / f"out-{seed}").document
        cells = {cell["attack"]: cell for cell in document["table"] if cell["selection"] == "all"}
        rates.append([cells["tmia_posterior"]["fpr"], cells["rmia"]["fpr"]])
        found.append(any(cell["fpr_off"] for cell in cells.values()))
        powers.append(cells["tmia_posterior"]["auc"])
    mean, spread = np.mean(rates, 0), np.std(rates, 0, ddof=1) / np.sqrt(len(rates))
    assert (mean - 2 * spread <= 0.1).all(), (mean, spread)
    assert (mean > 0.02).all(), mean
    assert np.mean(found) <= 0.25, rates
    assert np.mean(powers) > 0.5, powers


def test_a_student_of_a_resnet_18_that_was_tuned_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tv_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    values: dict[str, Any] = {
        "variants": {},
        "audit.mode": "III",
        "audit.beta": 0.2,
        "audit.asked": 4,
        "audit.reference_samples": 40,
        "audit.reconstruction": {"points": 4, "models": 2},
        "audit.attacks": ["tmia_distance", "tmia_posterior"],
        "audit.selectors": ["none"],
        "compute.workers": 0,
        "compute.store": str(tmp_path / "store"),
        "data.name": "fashion14",
        "split": {"reference_models": 9, "null_models": 2, "candidates": 40, "train_size": 40,
                  "attacker_points": 400, "filler": 200},
        "model": {"name": "python:tv_nets:resnet18", "settings": {}},
        "recipe": {"learning_rate": 1e-3, "epochs": 4, "batch_size": 20},
        "transfer": {"teacher": str(tmp_path / "teacher.pt"), "teacher_input": "raw"},
        "target": {"weights": str(tmp_path / "student.pt"), "members": "0:40"},
    }  # fmt: skip
    plan = load_plan("tmia-smoke", values=values)
    torch.manual_seed(0)
    teacher = plan.model.architecture().build((1, 14, 14), 1000, 0)
    torch.save(teacher.state_dict(), tmp_path / "teacher.pt")
    student = plan.model.architecture().build((1, 14, 14), 10, 1)
    start = {name: value for name, value in teacher.state_dict().items() if not name.startswith("fc.")}
    student.load_state_dict({**student.state_dict(), **start})
    x, y = load("fashion14").tensors(range(40)).all()
    trained_elsewhere(student.train(), x, y, steps=60, seed=0, rate=3e-4, batch=20)
    torch.save(student.state_dict(), tmp_path / "student.pt")
    check_against_data(plan)
    document = audited(plan, tmp_path / "out", shown=True).document
    cells = {cell["attack"]: cell for cell in document["table"] if cell["selection"] == "none"}
    assert cells.keys() == {"tmia_distance", "tmia_posterior"}
    assert all(cell["auc"] is None or 0 <= cell["auc"] <= 1 for cell in cells.values())
    (fit,) = [row for row in document["fit"] if row["group"] == "target"]
    assert fit["train_accuracy"] > fit["test_accuracy"]
    exposure = {
        **{name: values[name] for name in ("compute.workers", "compute.store", "data.name", "model", "target")},
        "audit.controls": 40,
    }
    points = audited(load_plan("gnq-target", values=exposure), tmp_path / "exposure", shown=True).scores.to_pandas()
    assert points.groupby("group").size().to_dict() == {"members": 40, "controls": 40}
    assert (points.uniqueness > 0).all() and points.bits.between(0, 1).all()
