"""``orch tune mia``: by what is chosen, pool by pool."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from audits.errors import BadInput
from orchestrator.engine.run.choice import choice_of
from orchestrator.engine.setting import Setting
from orchestrator.kinds import load_plan
from orchestrator.mia.kind import KIND
from orchestrator.mia.selection import SELECTION
from tune_spaces.registry import Sweep, fixed


@cache
def plan_once() -> Any:
    return load_plan("mia-smoke", values={"audit.fpr": [0.25]})


POINTS = 40


def scores(seed: int) -> tuple[pa.Table, dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Return a scores table of two pools of two targets, canaries and null models beside them, and its targets."""
    rng = np.random.default_rng(seed)
    own = {}
    rows: dict[str, list] = {name: [] for name in ("pool", "role", "target", "canary", "member", "score")}
    for target in range(4):
        for role in ("target", "null"):
            member, canary = rng.permutation(POINTS) < POINTS // 2, rng.permutation(POINTS) < 4
            score = rng.normal(size=POINTS) + member
            if role == "target":
                own[target] = score[~canary], member[~canary]
            for name, values in {"canary": canary, "member": member, "score": score}.items():
                rows[name] += values.tolist()
            rows["pool"] += [target // 2] * POINTS
            rows["role"] += [role] * POINTS
            rows["target"] += [target] * POINTS
    count = len(rows["score"])
    rows |= {"setting": ["a"] * count, "attack": ["loss"] * count, "point_id": list(range(count))}
    return pa.table(rows), own


def slow_auc(score: np.ndarray, member: np.ndarray) -> float:
    pairs = [(a > b) + (a == b) / 2 for a in score[member] for b in score[~member]]
    return float(np.mean(pairs))


def slow_tpr(score: np.ndarray, member: np.ndarray) -> float:
    """Return the share of members above the threshold that a quarter of the non-members are above."""
    others = np.sort(score[~member])[::-1]
    threshold = others[int(0.25 * len(others))]
    return float((score[member] > threshold).mean())


def test_values_are_those_of_ordinary_points_of_targets_alone_mean_by_pool():
    setting = Setting("a", {}, plan_once(), ())
    for seed in range(3):
        table, own = scores(seed)
        for metric, slow in (("loss.auc", slow_auc), ("loss.0.25.roc_tpr", slow_tpr)):
            found = SELECTION.on_targets(setting, table, metric)
            wanted = {pool: np.mean([slow(*own[2 * pool]), slow(*own[2 * pool + 1])]) for pool in range(2)}
            assert found == pytest.approx(wanted, abs=0.06 if metric.endswith("tpr") else 1e-12)
    assert SELECTION.on_targets(setting, table, "lira.auc") == {}


def test_what_targets_are_trained_by_may_not_vary_and_what_shadows_are_trained_by_may():
    def around(**changes):
        return Sweep("some", "", "mia-smoke", fixed({"a": changes}), "", "")

    assert choice_of(KIND, around(shadow_recipe={"epochs": 2}), plan_once(), "loss.auc", "max").own == "plan"
    for changes in ({"recipe.epochs": 2}, {"split.pools": 3}, {"seed": 3}):
        with pytest.raises(BadInput, match=f"changes {next(iter(changes))}, which no attack may choose"):
            choice_of(KIND, around(**changes), plan_once(), "loss.auc", "max")
