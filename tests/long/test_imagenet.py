"""``apollo-imagenet`` in miniature, on 50 000 JPEGs of 1 000 classes: equal bits, bounded memory, an honest price.

The images are small and made by number, the model is narrow, and each one trains on 2 000 images. What was found is
logged: ``pytest -m long --log-cli-level=info tests/long/test_imagenet.py``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.long.synthetic_imagenet import CLASSES, make_imagenet
from tests.long.weighed import LOST, Note, notes, weighed

pytestmark = [pytest.mark.long, pytest.mark.cluster, pytest.mark.timeout(7200)]

ROOT = Path(__file__).resolve().parents[2]
TRAIN, VAL, SIDE = 45, 5, 64  # images of a class, and the side to which they are brought
IMAGES = CLASSES * (TRAIN + VAL)
DECODED = IMAGES * 3 * SIDE**2
MINIATURE: dict[str, Any] = {
    "split": {
        "targets": 1,
        "train_size": 2000,
        "target_pool": 8000,
        "shadow_pool": 8000,
        "test_pool": 4000,
        "forget": 0.1,
        "candidates": {"forget": 50, "unseen": 50},
        "shadows": 4,
        "offline_shadows": 2,
    },
    "model.settings.width": 8,
    "recipe.epochs": 3,
    "recipe.learning_rate": 3e-3,
    "audit.search.steps": 3,
    "audit.fpr": [0.2],
    "unlearning": [
        {"method": "identity"},
        {"method": "gradient_ascent", "learning_rate": 2e-4, "epochs": 2, "momentum": 0.9, "clip_norm": 0.1},
        {"method": "scrub", "optimizer": "adamw", "learning_rate": 1e-4, "epochs": 2, "ascent_epochs": 1},
        {"method": "retrain"},
    ],
}
FEW: dict[str, Any] = {
    **MINIATURE,
    "split": {**MINIATURE["split"], "train_size": 500, "target_pool": 1000, "shadow_pool": 2000, "test_pool": 1000},
    "recipe.epochs": 1,
    "unlearning": [{"method": "identity"}, {"method": "retrain"}],
}
"""The same on a set of a tenth of the images."""


def call(place: Path, *command: str) -> str:
    """Run a command in ``place`` and return its standard output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def orch(place: Path, *arguments: str) -> str:
    """Run ``orch`` in ``place``."""
    return call(place, sys.executable, "-m", "orchestrator.cli.main", *arguments)


def plan(data: str, values: dict[str, Any]) -> tuple[str, ...]:
    """Return the words that name the shipped plan in miniature, on ``data``."""
    changes = {"data.name": data, **values}
    return (
        "apollo-imagenet",
        *(word for name, value in changes.items() for word in ("--set", f"{name}={said(value)}")),
    )


def said(value: Any) -> str:
    """Return a value as it is written behind ``--set``."""
    return value if isinstance(value, str) else json.dumps(value)


def audit(place: Path, name: str, words: tuple[str, ...], *more: str, nodes: bool = False) -> list[Note]:
    """Audit into the store ``name`` and the folder ``name-out``; return what the workers noted."""
    folders = ("--store", f"{place}/{name}", "--out", f"{place}/{name}-out")
    call(place, *weighed(place / f"{name}.notes", "audit", "apollo", *words, *folders, *more, nodes=nodes))
    return notes(place / f"{name}.notes")


def weights(store: Path) -> dict[str, str]:
    """Return the sha256 of all models of a store, by stage, key and file."""
    return {
        str(file.relative_to(store)): hashlib.sha256(file.read_bytes()).hexdigest()
        for stage in ("train", "unlearn")
        for file in (store / stage).rglob("*.safetensors")
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``shards`` of the images, and with ``few`` of them in files."""
    folder = tmp_path_factory.mktemp("imagenet")
    make_imagenet(folder / "images", TRAIN, VAL, 2)
    make_imagenet(folder / "few", TRAIN // 10, 1, 2)
    orch(folder, "data", "shard", "imagenet", "shards", "--root", "images")
    assert f": {IMAGES} images" in orch(folder, "data", "verify", "shards")
    return folder


def test_a_lost_node_changes_no_bit_memory_is_bounded_and_the_price_is_right(place: Path) -> None:
    small = plan(f"shards:{place}/shards?size={SIDE}", MINIATURE)
    estimate = json.loads(orch(place, "cost", *small, "--store", f"{place}/none", "--workers", "0", "--json"))
    whole = audit(place, "whole", small, "--workers", "0")
    spread = audit(place, "spread", small, nodes=True)

    lost = (place / f"spread.{LOST}").read_text()
    finished = {note.key: note.node for note in spread if note.done}
    again = {note.key for note in spread if note.node == lost and not note.done and finished[note.key] != lost}
    assert len({note.node for note in spread}) == 3 and again, "nothing was under way on the node that was lost"
    assert (
        len(weights(place / "whole")) == 7 * 4
    )  # trained, and by each method but identity, of which nothing is stored
    assert weights(place / "whole") == weights(place / "spread")
    scores = [(place / f"{name}-out" / "scores.parquet").read_bytes() for name in ("whole", "spread")]
    assert scores[0] == scores[1]
    result = json.loads((place / "whole-out" / "result.json").read_text())

    few = audit(place, "control", plan(f"imagenet?size={SIDE}", {"data.root": f"{place}/few", **FEW}), "--workers", "0")
    here = max(note.peak for note in whole) - max(note.peak for note in few)
    there = max(note.peak for note in spread) - max(note.peak for note in few)
    took = sum(note.cpu for note in whole)
    report = {
        "cpu seconds": {
            stage["stage"]: (
                round(stage["seconds"], 1),
                round(sum(note.cpu for note in whole if note.stage == stage["stage"]), 1),
            )
            for stage in estimate["stages"]
        },
        "estimated": estimate["seconds"],
        "took": took,
        "peak MB": {
            name: round(max(note.peak for note in found) / 1e6)
            for name, found in (("whole", whole), ("spread", spread), ("few", few))
        },
        "decoded MB": DECODED / 1e6,
        "test accuracy": [row["test_accuracy"] for row in result["utility"]],
    }
    logging.getLogger(__name__).info(json.dumps(report))
    assert max(here, there) < DECODED / 2, report
    assert took / 1.5 < estimate["seconds"] < took * 1.5, report
    assert max(report["test accuracy"]) > 3 / CLASSES, report
