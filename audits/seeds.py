"""Seeds: every random choice takes its own, derived from the plan's seed, a purpose and an index."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


class Purpose(StrEnum):
    """What a random choice is for. The values enter seeds: another value is another draw, and so other numbers."""

    ASSESS = "assess"
    AUGMENT = "augment"
    BOOTSTRAP = "bootstrap"
    BOUNDARY = "boundary"
    CANARY_LABEL = "canary label"
    CANARY_NOISE = "canary noise"
    CANARY_ROWS = "canary rows"
    CANDIDATES = "candidates"
    CELLS = "cells"
    REFERENCE_MODELS = "contrast models"
    DIRECTION = "direction"
    DROPOUT = "dropout"
    EXPOSURE = "exposure"
    FEATURES = "features"
    FIT = "fit"
    FMIA = "fmia"
    FORGET_ORDER = "forget order"
    GRADIENT_NOISE = "gradient noise"
    HELD_OUT = "held out"
    HOP_SKIP_JUMP = "hop_skip_jump"
    INIT = "init"
    INVERSION_STARTS = "inversion starts"
    INVERT = "invert"
    JUDGE = "judge"
    K_MEANS = "k-means"
    K_MEANS_SAMPLE = "k-means sample"
    K_MEANS_SKETCH = "k-means sketch"
    LABELS = "labels"
    MEMBERSHIP = "membership"
    MEMBERSHIP_REFERENCE = "membership/contrast"
    MEMBERSHIP_NULL = "membership/fresh"
    MEMBERSHIP_PAIR = "membership/pair"
    MEMBERSHIP_TARGET = "membership/target"
    MEMBERSHIP_TEST = "membership/test"
    MEMORISED = "memorised"
    NOISE_VOTES = "noise votes"
    OFFLINE = "offline"
    ORDER = "order"
    PAIR = "pair"
    PERMUTATION = "permutation"
    PERMUTE = "permute"
    POOLS = "pools"
    PRIVACY = "privacy"
    PROJECTION = "projection"
    RADII = "radii"
    RANDOM_RANKING = "random ranking"
    RANKING = "ranking"
    RETAINED = "retained"
    RETRAINED_TWIN = "retrained twin"
    SELECT = "select"
    SHADOW = "shadow"
    SHADOW_ROWS = "shadow rows"
    TARGET = "target"
    TARGETS = "targets"
    TEACHER = "teacher"
    TRAIN = "train"
    TREES = "trees"
    TWIN = "twin"
    TWINS = "twins"
    UNLEARN = "unlearn"
    VOTES = "votes"


def derive_seed(seed: int, purpose: str, *index: int | str) -> int:
    """Return a 63-bit seed that depends on ``seed``, ``purpose`` and ``index`` only.

    ``purpose`` is one of ``Purpose``, or a name that stands for itself: of an attack, or of the group of a design. A
    new component uses its own name: ``Purpose`` is reached by every stage, so an edit of it changes every key.
    """
    text = "/".join([str(int(seed)), purpose, *(str(part) for part in index)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def torch_generator(seed: int) -> torch.Generator:
    """Return a CPU generator seeded with ``seed`` (random draws are made on the CPU so that devices agree)."""
    import torch

    return torch.Generator(device="cpu").manual_seed(seed)


def numpy_generator(seed: int) -> np.random.Generator:
    """Return a NumPy generator (PCG64) seeded with ``seed``."""
    return np.random.default_rng(seed)
