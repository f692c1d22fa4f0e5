"""Frozen logits and answers lead to pinned scores: no scoring rule changes by accident.

``golden/answers.json`` holds logits and labels of imagined shadows and targets, ``golden/scores.json`` what each attack
made of them. Where a rule is changed on purpose, say so in the changelog and pin its scores anew from the repository's
root with ``python tests/test_golden_scores.py``; the difference of ``scores.json`` then shows which attacks moved. The
answers are never drawn anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audits.attacks import ATTACKS
from audits.attacks.evidence import Evidence, Posteriors, Walks
from audits.attacks.gather import scaled

GOLDEN = Path(__file__).parent / "golden"
RATE = 0.05
FITTED = {"apollo", "random_directions", "single_query"}  # scikit-learn's solver stops where its version stops


def tolerance(name: str) -> float:
    return 1e-6 if name in FITTED else 1e-9


def bits(rows: Any) -> np.ndarray:
    """Return nested lists of strings such as "0110" as an array of booleans."""
    if isinstance(rows, str):
        return np.array([digit == "1" for digit in rows])
    return np.stack([bits(row) for row in rows])


def frozen_walks(part: dict[str, Any]) -> Walks:
    confidence = np.array(part["confidence"])
    steps = confidence.shape[-1]
    queries = np.full(confidence.shape[1], 1 + 4 * steps, dtype=np.int32)
    return Walks(
        bits(part["pseudo"]), bits(part["inside"]), bits(part["target"]), confidence, np.zeros_like(confidence), queries
    )


def frozen_evidence() -> Evidence:
    answers = json.loads((GOLDEN / "answers.json").read_text())
    labels = torch.tensor(answers["labels"])
    logits = torch.tensor(answers["logits"], dtype=torch.float64)  # (m + 1, K, classes), the target last
    confidences = np.stack([scaled(each.log_softmax(1), labels) for each in logits])
    posteriors = Posteriors(
        confidences[:-1], bits(answers["inside"]), confidences[-1], np.ones(len(labels), dtype=np.int32)
    )
    walks = {kind: frozen_walks(answers[kind]) for kind in ("apollo", "random")}
    return Evidence(walks, frozen_walks(answers["offline"]), posteriors)


def found(name: str) -> dict[str, list[float]]:
    finding = ATTACKS[name]().judge(frozen_evidence())
    return {
        "score": finding.score.tolist(),
        "null": finding.null.tolist(),
        "decision": finding.decide(RATE).tolist(),
        "queries": finding.queries.tolist(),
    }


def pinned() -> dict[str, dict[str, list[float]]]:
    return json.loads((GOLDEN / "scores.json").read_text())


def test_every_attack_is_pinned_and_nothing_else() -> None:
    assert sorted(pinned()) == list(ATTACKS)


@pytest.mark.parametrize("part", ["score", "null", "decision", "queries"])
@pytest.mark.parametrize("name", ATTACKS)
def test_scores_are_the_pinned_ones(name: str, part: str) -> None:
    np.testing.assert_allclose(found(name)[part], pinned()[name][part], rtol=0, atol=tolerance(name))


@pytest.mark.parametrize("name", ATTACKS)
def test_the_pinned_scores_can_tell_rules_apart(name: str) -> None:
    own = np.array(pinned()[name]["score"])
    assert np.ptp(own) > 0
    for other in set(ATTACKS) - {name}:
        assert np.abs(own - np.array(pinned()[other]["score"])).max() > 1e-3


if __name__ == "__main__":
    scores = {name: found(name) for name in ATTACKS}
    rows = [
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(part)}: {json.dumps(values)}" for part, values in parts.items())
        + "\n }"
        for name, parts in scores.items()
    ]
    (GOLDEN / "scores.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
