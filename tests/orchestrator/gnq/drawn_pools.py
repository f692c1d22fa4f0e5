"""Drawn pools of a GNQ run: confidences of targets and shadows that are surer of hard points they train on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from audits.data.twins import draw_twins
from audits.gnq.kept import kept_points

HALF, SHADOWS, SIGNAL = 60, 12, 1.5
SEES = {"gnq_log": 0.2, "diagonal": 0.4, "loss_log": 0.5, "gradient_norm_log": 0.6, "random": math.inf}
"""Ranking → noise with which it sees how hard a point is."""


@dataclass(frozen=True)
class Answers:
    """Models of a pool: confidences (M, 2n), whose points a model was made from, and those left by the arm."""

    confidence: np.ndarray
    half: np.ndarray
    kept: np.ndarray


@dataclass(frozen=True)
class Pool:
    """Targets and shadows by arm, targets that never saw a point, and the targets' rankings of their points."""

    targets: dict[str, Answers]
    shadows: dict[str, Answers]
    null: np.ndarray
    scores: dict[str, np.ndarray]


def drawn_pool(arms: list[dict], signal: float, seed: int, place: int) -> Pool:
    """Return a pool in which models are surer of hard points they train on, by ``signal``."""
    rng = np.random.default_rng([seed, place])
    hard = rng.normal(size=2 * HALF)
    halves = [draw_twins(2 * HALF, seed, place, index).half for index in range(1 + SHADOWS // 2)]
    half = np.concatenate(halves)

    def confidence(seen: np.ndarray, strength: float) -> np.ndarray:
        noise = 0.6 * rng.normal(size=seen.shape)
        return 1.0 - hard + noise + strength * signal * seen * np.maximum(hard + 0.5, 0.0)

    scores = {name: hard + min(noise, 99.0) * rng.normal(size=half.shape) for name, noise in SEES.items()}
    answers: dict[str, Answers] = {}
    for arm in arms:
        kept = kept_points(half, scores[arm["ranking"]], arm["share"]) if arm["method"] == "remove" else half
        strength = {"dp_sgd": 0.2, "noise": 0.8}.get(arm["method"], 1.0)
        answers[arm["arm"]] = Answers(confidence(kept, strength), half, kept)
    parts = [
        {name: Answers(*(field[rows] for field in vars(own).values())) for name, own in answers.items()}
        for rows in (slice(0, 2), slice(2, None))
    ]
    null = confidence(np.zeros_like(half[:2]), 1.0)
    return Pool(*parts, null, {name: score[:2] for name, score in scores.items()})
