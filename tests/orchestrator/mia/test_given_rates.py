"""Promised rates about given models, where the truth is known: many models of one script, each audited by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.kinds import load_plan
from tests.cases.runs import audited
from tests.orchestrator.mia.test_given import PLAN, own_loop

MODELS, RATE = 30, 0.2


def found(place: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> list[dict[str, Any]]:
    """Return the rows of the table of every audit, of models that ``own_loop`` makes on members by chance."""
    monkeypatch.chdir(place)
    (place / "plan.yaml").write_text(PLAN)
    rows = []
    for run in range(MODELS):
        members = np.random.default_rng(100 + run).permutation(1797)[:80]
        own_loop(members, place / "weights.pt", seed=run)
        (place / "members.txt").write_text("".join(f"{point}\n" for point in members))
        named = {"compute.workers": 0, "compute.store": str(place / "store"), "seed": run, **changes}
        rows += audited(load_plan("plan.yaml", values=named), place / "out").document["table"]
    return rows


@pytest.mark.long
def test_models_of_the_plans_recipe_keep_the_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On average over models: a single one is above or below, which its interval tells and the control corrects for."""
    rows = found(tmp_path, monkeypatch)
    for attack in ("rmia", "lira_offline", "loss", "label_gap"):
        own = [row for row in rows if row["attack"] == attack]
        rates = np.array([row["found_fpr"] for row in own])
        error = rates.std(ddof=1) / np.sqrt(MODELS)
        assert abs(rates.mean() - RATE) < 3.5 * error, (attack, rates.mean(), error)
    assert sum(row["void"] for row in rows) <= 0.1 * len(rows)


@pytest.mark.long
def test_a_recipe_that_is_not_the_models_own_breaks_it_and_is_found_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shadows that are trained for a twentieth of the time expect less of the given model than it gives to all."""
    rows = found(tmp_path, monkeypatch, **{"recipe.epochs": 1})
    offline = [row for row in rows if row["attack"] == "lira_offline"]
    assert np.mean([row["void"] for row in offline]) > 0.9
    loss = [row for row in rows if row["attack"] == "loss"]  # asks no shadow
    assert sum(row["void"] for row in loss) <= 0.1 * len(loss)
