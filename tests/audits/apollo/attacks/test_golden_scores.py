"""Frozen logits and answers lead to pinned scores: no scoring rule changes by accident.

``golden/answers.json`` holds logits and labels of imagined shadows and targets, ``golden/scores.json`` what each attack
made of them. Where a rule is changed on purpose, say so in the changelog and pin its scores anew from the repository's
root with ``python -m tests.audits.apollo.attacks.test_golden_scores``; the difference of ``scores.json`` then shows
which attacks moved. A kind of evidence that has no answers yet is then given synthetic ones; the answers of a kind are
never drawn anew.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, Evidence, Posteriors, Walks
from audits.apollo.evidence.logits import Logits
from tests.cases.families import as_one
from tests.cases.synthetic_evidence import make_evidence

GOLDEN = Path(__file__).parents[3] / "golden"
RATE = 0.05
# scikit-learn's solvers stop where their version stops
FITTED = {
    "apollo",
    "apollo_plus",
    "boundary_distance",
    "random_directions",
    "single_query",
    "u_mia_oracle",
    "u_mia_shadow",
    "yoqo",
}


def tolerance(name: str) -> float:
    return 1e-6 if name in FITTED else 1e-9


def bits(rows: Any) -> np.ndarray:
    """Return nested lists of strings such as "0110" as an array of booleans."""
    if isinstance(rows, str):
        return np.array([digit == "1" for digit in rows])
    return np.stack([bits(row) for row in rows])


def frozen_walks(part: dict[str, Any]) -> Walks:
    confidence, inside = np.array(part["confidence"]), bits(part["inside"])
    queries = np.full(confidence.shape[1], 1 + 4 * confidence.shape[-1], dtype=np.int32)
    return Walks(
        pseudo=bits(part["pseudo"]),
        inside=inside,
        outside=~inside,
        target=bits(part["target"]),
        confidence=confidence,
        radius=np.zeros_like(confidence),
        queries=queries,
    )


def label_at_x(walks: Walks) -> Walks:
    """Return the first query of each walk: what the kind ``point`` asks."""
    return dataclasses.replace(
        walks,
        pseudo=walks.pseudo[..., :1],
        target=walks.target[..., :1],
        confidence=walks.confidence[:, :, :0],
        radius=walks.radius[:, :, :0],
        queries=np.ones_like(walks.queries),
    )


def frozen_evidence() -> Evidence:
    """Return the frozen answers by kind; log-probabilities stay in float64, so that scores do not hang on rounding."""
    answers = json.loads((GOLDEN / "answers.json").read_text())
    labels, inside = np.array(answers["labels"]), bits(answers["inside"])
    shown, original = (torch.tensor(answers[name], dtype=torch.float64) for name in ("logits", "original_logits"))
    own, ones = np.arange(len(labels)), np.ones(len(labels), dtype=np.int32)
    shadow, before = (logits.log_softmax(-1).numpy() for logits in (shown, original))  # (m + 1 or m, K, classes)
    apollo = frozen_walks(answers["apollo"])
    parts = {
        "apollo": apollo,
        "random": frozen_walks(answers["random"]),
        "offline": frozen_walks(answers["offline"]),
        "point": label_at_x(apollo),
        "posteriors": Posteriors(before, shadow[:-1], inside, ~inside, shadow[-1], labels, ones),
        "logits": Logits(
            original.numpy()[:, own, labels],
            shown.numpy()[:-1, own, labels],
            inside,
            ~inside,
            shown.numpy()[-1, own, labels],
            ones,
        ),
    }
    others = {kind: KINDS[kind].part.of(thawed(fields)) for kind, fields in answers["parts"].items()}
    return Evidence(parts | others, bits(answers["truth"]))


def frozen(values: np.ndarray) -> list[Any]:
    """Return the shape and the elements of ``values``; booleans as one string such as "0110"."""
    if values.dtype == bool:
        return [list(values.shape), "".join("01"[int(bit)] for bit in values.flat)]
    return [list(values.shape), (values.round(4) if values.dtype.kind == "f" else values).flatten().tolist()]


def thawed(fields: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of a part from what ``frozen`` made of each."""
    return {
        name: (bits(values) if isinstance(values, str) else np.array(values)).reshape(shape)
        for name, (shape, values) in fields.items()
    }


@cache
def answers() -> Evidence:
    """Return the frozen evidence, which no attack changes."""
    return frozen_evidence()


@cache
def found(name: str) -> dict[str, list[float]]:
    finding = ATTACKS[name]().judge(answers())
    return {
        "score": finding.score.tolist(),
        "null": finding.null.tolist(),
        "decision": finding.decide(RATE).tolist(),
        "queries": finding.queries.tolist(),
    }


@cache
def pinned() -> dict[str, dict[str, list[float]]]:
    return json.loads((GOLDEN / "scores.json").read_text())


def test_every_attack_is_pinned_and_nothing_else() -> None:
    assert sorted(pinned()) == list(ATTACKS)


@as_one("name", ATTACKS)
def test_scores_are_the_pinned_ones(name: str) -> None:
    for part in ("score", "null", "decision", "queries"):
        np.testing.assert_allclose(found(name)[part], pinned()[name][part], rtol=0, atol=tolerance(name), err_msg=part)


def test_the_pinned_scores_can_tell_rules_apart() -> None:
    for name in ATTACKS:
        own = np.array(pinned()[name]["score"])
        assert np.ptp(own) > 0, name
        for other in set(ATTACKS) - {name}:
            assert np.abs(own - np.array(pinned()[other]["score"])).max() > 1e-3, (name, other)


def freeze_new_kinds() -> None:
    """Give synthetic answers to the kinds of evidence that have none; the answers that are there stay."""
    answers = json.loads((GOLDEN / "answers.json").read_text())
    kinds = [kind for kind in KINDS if kind not in frozen_evidence().parts]
    made = make_evidence(20, len(answers["labels"]), kinds=kinds)[0].parts
    for kind, part in made.items():
        answers["parts"][kind] = {name: frozen(values) for name, values in part.arrays().items()}
    (GOLDEN / "answers.json").write_text(pretty(answers) + "\n")


def pretty(value: Any, depth: int = 1) -> str:
    """Return JSON in which every entry of an object has a line of its own, and arrays have one line."""
    if not isinstance(value, dict):
        return json.dumps(value)
    rows = [f"{' ' * depth}{json.dumps(name)}: {pretty(inner, depth + 1)}" for name, inner in value.items()]
    return "{\n" + ",\n".join(rows) + "\n" + " " * (depth - 1) + "}"


if __name__ == "__main__":
    freeze_new_kinds()
    scores = {name: found(name) for name in ATTACKS}
    (GOLDEN / "scores.json").write_text(pretty(scores) + "\n")
