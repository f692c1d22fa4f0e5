"""p-values under the null hypothesis: they hold with a large pool of the attacker's, and not with one of |B| = n.

Models are ridge classifiers in closed form on real digits, so that hundreds of them are fitted in a second; designs,
p-values and selectors are those of an audit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from audits.data.catalogue import load
from audits.statistics.precision import measure_null
from audits.tmia.design import MembershipDesign, MembershipSplit, make_membership
from audits.tmia.p_values import decider
from audits.tmia.selectors import SELECTORS, Case, chosen
from audits.tmia.shared_pool import raw_level

N, REFERENCE, NULL, CANDIDATES, BETA = 80, 39, 60, 120, 0.05
Floats = NDArray[np.float64]


def pictures() -> tuple[Floats, NDArray[np.int64]]:
    data = load("digits")
    assert isinstance(data.inputs, np.ndarray)
    return data.inputs.reshape(len(data), -1) / 255.0, data.labels


def fitted(x: Floats, y: NDArray[np.int64], ridge: float = 1.0) -> Floats:
    """Return the weights (features, classes) of a ridge classifier."""
    return np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ np.eye(10)[y])


def losses(weights: Floats, x: Floats, y: NDArray[np.int64]) -> Floats:
    """Return the log-loss of the true class, logits 5·(x @ weights)."""
    logits = 5 * (x @ weights)
    return np.asarray(np.log(np.exp(logits).sum(1)) - logits[np.arange(len(y)), y])


def designed(pool: int) -> MembershipDesign:
    split = MembershipSplit(
        targets=2,
        reference_models=REFERENCE,
        null_models=NULL,
        candidates=CANDIDATES,
        train_size=N,
        attacker_points=pool,
        filler=400,
    )
    return make_membership(np.arange(1797), split, seed=5)


def scene(pool: int) -> dict[str, Any]:
    """Return losses of null and reference models on candidates, and what selectors read."""
    x, y = pictures()
    design = designed(pool)
    k, samples = design.candidates, design.attacker_points[:300]
    models = {group: [fitted(x[ids], y[ids]) for ids in getattr(design, group)] for group in ("reference", "null")}
    features = np.concatenate([x[np.concatenate([k, samples])] @ weights for weights in models["reference"]], axis=1)
    return {
        "design": design,
        "reference": np.stack([losses(weights, x[k], y[k]) for weights in models["reference"]]),
        "null": np.stack([losses(weights, x[k], y[k]) for weights in models["null"]]),
        "samples": np.stack([losses(weights, x[samples], y[samples]) for weights in models["reference"]]),
        "outside": np.stack([~np.isin(samples, ids) for ids in design.reference]),
        "features": features,
    }


def null_rate(found: dict[str, Any], rows: NDArray[np.bool_], beta: float = BETA, pool_sets: float = np.inf) -> Any:
    decide = decider(found["null"], found["reference"], raw_level(beta, pool_sets), larger_is_member=False)
    return measure_null(decide, REFERENCE, beta, rows, draws=200, seed=1).fpr


@pytest.fixture(scope="module")
def large() -> dict[str, Any]:
    return scene(pool=15 * N)


@pytest.mark.parametrize("name", ["none", "kmeans", "reference_loss", "neighbours"])
def test_null_models_are_called_members_no_more_often_than_promised(large: dict[str, Any], name: str) -> None:
    import torch

    case = Case(
        CANDIDATES, 10, N, 0, torch.from_numpy(large["features"]).float(), large["reference"], large["samples"],
        large["outside"],
    )  # fmt: skip
    rows = chosen(SELECTORS[name]().select(case), size=30)
    found = null_rate(large, rows)
    assert found.low <= BETA
    assert found.value <= 0.085  # 30 candidates × 60 models that share 39 reference models


def test_a_pool_of_one_training_set_makes_p_values_too_small_and_is_warned_of(large: dict[str, Any]) -> None:
    small, everyone = scene(pool=N), np.ones(CANDIDATES, dtype=np.bool_)
    inflated, kept = null_rate(small, everyone), null_rate(large, everyone)
    assert kept.value <= 0.065
    assert inflated.value >= 2 * BETA
    assert inflated.low > kept.value
    assert large["design"].warnings == ()
    (warning,) = small["design"].warnings
    assert "raw ranks of 5 % come up" in warning
    assert f"raise split.attacker_points to {10 * N} or" in warning


def test_the_correction_for_the_pool_mends_large_pools_and_eases_small_ones(large: dict[str, Any]) -> None:
    """Of one training set the pool has other faults too: repeats make reference models worse, so the warning stays."""
    small = scene(pool=N)
    for found, pool_sets in ((large, 15), (small, 1)):
        raw, corrected = (null_rate(found, hard_points(found), 0.1, sets).value for sets in (np.inf, pool_sets))
        assert corrected < raw
        assert (corrected <= 0.1) == (pool_sets == 15)
    assert null_rate(large, hard_points(large), BETA, 15).value <= BETA < null_rate(large, hard_points(large)).value


def hard_points(found: dict[str, Any]) -> NDArray[np.bool_]:
    """Return the quarter of the candidates that reference models find hardest."""
    mean = found["reference"].mean(0)
    return np.asarray(mean >= np.quantile(mean, 0.75))
