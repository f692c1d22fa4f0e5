"""Answers of made-up models (``audits.conformance.tmia_answers``), and rulings on them."""

from __future__ import annotations

from functools import cache
from typing import Any

from audits.conformance.tmia_answers import (
    COPIES,
    SLOPE,
    Scene,
    confidence,
    looks,
    made,
    signed,
    starred,
    synthetic_answers,
)
from audits.tmia.answers import Answers
from audits.tmia.attacks import ATTACKS, JudgeSettings, Ruling
from audits.tmia.attacks.network import Network

__all__ = [
    "BETA",
    "COPIES",
    "LABELS",
    "OLDER",
    "ORACLES",
    "RANKED",
    "SLOPE",
    "WHITE_BOX",
    "Scene",
    "confidence",
    "looks",
    "made",
    "ruling",
    "scene",
    "signed",
    "starred",
    "synthetic_answers",
    "usual",
]

RANKED = ["tmia", "tmia_distance", "tmia_posterior", "tmia_vector", "tmia_smoothed", "pmia", "noise_votes"]
OLDER = ["gmia1", "gmia2", "gmia3", "fmia", "yeom", "label_gap", "lira_oracle", "nasr", "rmia", "stolen_memories"]
WHITE_BOX = ["nasr", "stolen_memories"]
LABELS = ["tmia", "tmia_distance", "tmia_smoothed", "noise_votes", "label_gap"]
ORACLES = ["lira_oracle"]
BETA = 0.1


@cache
def scene(**settings: Any) -> Scene:
    """Return one scene for many tests."""
    return synthetic_answers(1, **settings)


def ruling(name: str, answers: Answers, beta: float = BETA, **chosen: Any) -> Ruling:
    """Return the ruling of the attack ``name``; ``chosen``: further settings."""
    return ATTACKS[name]().judge(answers, JudgeSettings(beta, **chosen), seed=5)


def usual(name: str) -> Ruling:
    """Return the ruling on 40 of 60 candidates, with failed distances."""
    return usual_by(name, Network.fitted)


@cache
def usual_by(name: str, _: object) -> Ruling:
    """Return the ruling for attack networks that are trained so (``few_epochs``)."""
    return ruling(name, scene(asked=40, failed=0.05).answers)
