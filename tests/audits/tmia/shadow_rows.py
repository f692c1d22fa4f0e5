"""Random posteriors of shadows and targets, of which members are surer of their class."""

from __future__ import annotations

import numpy as np

from audits.tmia.attacks.shadows import ShadowRows, Verdict

CLASSES, TARGETS, POINTS = 4, 3, 80


def posteriors(member: np.ndarray, label: np.ndarray, seed: int, lift: float = 2.0) -> np.ndarray:
    """Return random posteriors (..., CLASSES); members' logit of their class is higher by ``lift``."""
    logit = np.random.default_rng(seed).normal(size=(*member.shape, CLASSES))
    logit += (np.arange(CLASSES) == label[..., None]) * (1.0 + lift * member[..., None])
    weight = np.exp(logit)
    return weight / weight.sum(-1, keepdims=True)


def shadow(seed: int, count: int = 200, lift: float = 2.0) -> ShadowRows:
    rng = np.random.default_rng(seed)
    member, label = np.arange(count) % 2 == 0, rng.integers(CLASSES, size=count)
    return ShadowRows(posteriors(member, label, seed, lift), member, label)


def targets(seed: int = 50, lift: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return membership (T, K), labels (K,) and posteriors (T, K, CLASSES)."""
    rng = np.random.default_rng(seed)
    member, label = rng.random((TARGETS, POINTS)) < 0.5, rng.integers(CLASSES, size=POINTS)
    return member, label, posteriors(member, np.broadcast_to(label, member.shape), seed, lift)


def accuracy(verdict: Verdict, member: np.ndarray) -> float:
    return float((verdict.decision == member).mean())


def only(rows: ShadowRows, kept: np.ndarray) -> ShadowRows:
    return ShadowRows(rows.posterior[kept], rows.member[kept], rows.label[kept])
