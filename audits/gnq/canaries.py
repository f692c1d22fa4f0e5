"""Canaries: points planted into a training set that a score of exposure should rank near the top.

A canary's memorisation is known beforehand, so its rank says what a score sees and what it is blind to. The exactly
orthogonal gradient is the hard case: mode pinv gives it 0, mode ridge its squared norm over λ. An image can be planted
whose gradient is orthogonal in the weights of a linear first layer (``corner``): in the whole gradient only where there
is nothing but that layer and it has no bias. Networks learn all but the wrong label early, then gradients vanish, so
that a trained model shows little of those canaries by any score: look along training.

Source of the idea: Carlini et al., arXiv 1802.08232; these four kinds are this module's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from audits.arrays import Floats
from audits.data.dataset import IMAGE_RANGE
from audits.data.tensors import TensorSet
from audits.errors import BadInput, did_you_mean
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.uniqueness.accumulate import Trace
from audits.uniqueness.rankings import RANKINGS, readable, uniqueness

CANARIES = ("noise", "checkerboard", "wrong_label", "corner")
DRAWN = ("noise", "checkerboard", "corner")  # images that take the place of another


def planted(
    data: TensorSet,
    kinds: Sequence[str] = CANARIES,
    seed: int = 0,
    *,
    value_range: tuple[float, float] = IMAGE_RANGE,
    corner: int = 0,
) -> tuple[TensorSet, dict[str, int]]:
    """Return ``data`` with one point of each of ``kinds`` replaced by a canary, and the row of each kind.

    ``data``: images (N, C, H, W), uint8, or floats in ``value_range``; it is not changed. A kind has the same row
    whichever others are planted. Labels stay those of the points replaced, but for:

    - noise: every number uniform in the range.
    - checkerboard: lowest and highest value in turn.
    - wrong_label: a true image under another label that occurs in the set.
    - corner: highest value where every other image is 0, and 0 elsewhere. So in the weights of a linear first layer,
      whose gradient is 0 wherever the input is, its gradient is orthogonal to everyone else's; not in biases, later
      layers and convolutions, which all points share. Where no number is unused, ``corner`` = k > 0 makes the first
      k × k pixels so, by zeroing them in all other images, noise and checkerboard included.

    Raises BadInput for unknown or repeated kinds, points that are no images, too few of them, a set of one class where
    a wrong label is asked for, and a corner that is too large or where no number is unused.
    """
    check_kinds(data, kinds)
    rows = dict(zip(CANARIES, drawn_rows(len(data), seed), strict=True))
    x, y = data.x.clone(), data.y.clone()
    low, high = (0, 255) if x.dtype == torch.uint8 else value_range
    unused = torch.zeros(x.shape[1:], dtype=torch.bool, device=x.device)
    if "corner" in kinds:
        unused = unused_numbers(x, [rows[kind] for kind in kinds if kind in DRAWN], corner)
        x[:, unused] = 0
    for kind in kinds:
        row = rows[kind]
        match kind:
            case "noise":
                x[row] = noise(x, low, high, seed).masked_fill(unused, 0)
            case "checkerboard":
                x[row] = checkerboard(x, low, high).masked_fill(unused, 0)
            case "corner":
                x[row] = torch.where(unused, high, 0).to(x.dtype)
            case "wrong_label":
                y[row] = other_label(y, row, seed)
    return TensorSet(x, y), {kind: rows[kind] for kind in kinds}


def canary_ranks(trace: Trace, rows: Mapping[str, int], seed: int = 0) -> dict[str, dict[str, float]]:
    """Return score → canary → rank among the N points of ``trace``: 1 is the most exposed, ties share their mean rank.

    ``rows``: name → row of each canary. Scores: every ranking of ``RANKINGS`` whose values were traced;
    ``diagonal_final`` and, with mode pinv, ``pinv_final``, which like ``gnq_final``, ``gradient_norm`` and
    ``final_loss`` read the trained model alone. ``seed`` is that of the ranking ``random``.
    Raises BadInput for a trace without modes ridge and diagonal, and for rows that it does not have.
    """
    points = trace.loss.shape[1]
    for name, row in rows.items():
        if not 0 <= row < points:
            raise BadInput(f"canary {name!r} is row {row}; allowed: 0 to {points - 1}, the points that were traced")
    unseen = set() if "pinv" in trace.gnq else {"pinv_log", "pinv_sum"}
    seen = [name for name in RANKINGS if name not in unseen and readable(name, trace)]
    scores = {name: RANKINGS[name](trace, seed) for name in seen}
    scores["diagonal_final"] = uniqueness(trace, "diagonal")[-1]
    if "pinv" in trace.gnq:
        scores["pinv_final"] = trace.gnq["pinv"][-1]
    return {name: {canary: rank_of(score, row) for canary, row in rows.items()} for name, score in scores.items()}


def rank_of(score: Floats, row: int) -> float:
    """Return the rank of one point by ``score`` (N,), 1 for the highest; equal scores share their mean rank."""
    above, level = int((score > score[row]).sum()), int((score == score[row]).sum())
    return above + (level + 1) / 2


def check_kinds(data: TensorSet, kinds: Sequence[str]) -> None:
    """Raise BadInput for kinds that are unknown or repeated, and for points that no canary can stand for."""
    for kind in kinds:
        if kind not in CANARIES:
            raise BadInput(f"canary is {kind!r}{did_you_mean(kind, CANARIES)}; allowed: {', '.join(CANARIES)}")
    if len(set(kinds)) < len(kinds):
        raise BadInput(f"canaries are {', '.join(kinds)}; name each kind once")
    if data.x.ndim != 4:
        raise BadInput(f"points have shape {tuple(data.x.shape[1:])}; canaries are images (channels, height, width)")
    if len(data) <= len(CANARIES):
        raise BadInput(f"the number of points is {len(data)}; canaries need more than {len(CANARIES)}")


def drawn_rows(points: int, seed: int) -> list[int]:
    """Return the row of every one of ``CANARIES``, drawn without replacement."""
    order = torch.randperm(points, generator=torch_generator(derive_seed(seed, Purpose.CANARY_ROWS)))
    return [int(row) for row in order[: len(CANARIES)]]


def unused_numbers(x: torch.Tensor, replaced: list[int], corner: int) -> torch.Tensor:
    """Return which numbers of an image are for ``corner`` alone, (C, H, W) bool: a corner, or those at 0 everywhere."""
    if not 0 <= corner < min(x.shape[2:]):
        raise BadInput(f"corner is {corner}; allowed: 0 to {min(x.shape[2:]) - 1} (pixels a side), 0 to search for it")
    unused = torch.zeros(x.shape[1:], dtype=torch.bool, device=x.device)
    unused[:, :corner, :corner] = True
    if corner == 0:
        others = torch.ones(len(x), dtype=torch.bool, device=x.device)
        others[replaced] = False
        unused = (x[others] == 0).all(0)
    if not bool(unused.any()):
        raise BadInput(
            "canary 'corner': every pixel is used by some image; give corner=2, which zeroes 2 × 2 pixels in all other "
            "images, or leave the canary out"
        )
    return unused


def noise(x: torch.Tensor, low: float, high: float, seed: int) -> torch.Tensor:
    """Return an image like those of ``x``, every number drawn uniformly."""
    generator = torch_generator(derive_seed(seed, Purpose.CANARY_NOISE))
    if x.dtype == torch.uint8:
        return torch.randint(int(high) + 1, x.shape[1:], generator=generator, dtype=x.dtype).to(x.device)
    return (low + (high - low) * torch.rand(x.shape[1:], generator=generator, dtype=x.dtype)).to(x.device)


def checkerboard(x: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Return an image like those of ``x``: ``low`` first, then the two values in turn along both sides."""
    _, _, height, width = x.shape
    odd = (torch.arange(height)[:, None] + torch.arange(width)) % 2 == 1
    return torch.where(odd, high, low).to(x).expand(x.shape[1:])


def other_label(y: torch.Tensor, row: int, seed: int) -> int:
    """Return a label that occurs in ``y`` (N,) and is not that of ``row``."""
    others = [label for label in y.unique().tolist() if label != int(y[row])]
    if not others:
        raise BadInput("canary 'wrong_label': all points have one label; give points of two classes or more")
    generator = torch_generator(derive_seed(seed, Purpose.CANARY_LABEL))
    return int(others[int(torch.randint(len(others), (1,), generator=generator))])
