"""Scores of each point under one trained model: its loss, the norm of its gradient and its gradient uniqueness (GNQ).

Loss and norm are the controls: at a single model GNQ in mode ridge ranks points nearly as they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from audits.arrays import Floats
from audits.data.points import tensor_set
from audits.data.tensors import TensorSet
from audits.errors import BadInput, did_you_mean
from audits.gradients.gram import CHUNK, MEMORY, gram, squared_norms
from audits.gradients.gram_checks import checked_gram
from audits.gradients.residuals import Loss
from audits.training.loop import logits
from audits.uniqueness.diagonal import diagonal_uniqueness, mean_square
from audits.uniqueness.pinv import independent_uniqueness, report_from_gram
from audits.uniqueness.uniqueness import MODES as GRAM_MODES
from audits.uniqueness.uniqueness import uniqueness_from_gram

MODES = (*GRAM_MODES, "diagonal")


@dataclass(frozen=True)
class Scores:
    """Scores of N points under one model, each (N,) float64 ≥ 0.

    ``loss``: cross-entropy in nats; ``squared_norm``: ‖g‖²; ``gnq``: mode → gradient uniqueness; ``doubt``: why the
    rank that mode pinv rests on is not certain, or "".
    """

    loss: Floats
    squared_norm: Floats
    gnq: dict[str, Floats]
    doubt: str


def gradient_uniqueness(
    model: nn.Module,
    data: Any,
    mode: str = "ridge",
    ridge: float = 1e-3,
    relative: bool = True,
    *,
    loss: str | Loss = "cross_entropy",
    chunk: int = CHUNK,
    memory: int = MEMORY,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Floats:
    """Return the gradient uniqueness of every point of ``data`` among all of them, (N,) float64 ≥ 0.

    ``data``: inputs (N, …) and labels (N,) as a ``TensorSet``, as a pair of tensors or arrays, as a data set of torch
    or torchvision, as a DataLoader (whose order does not count), or as the path of an .npz file.
    ``mode``: "ridge" or "pinv" (see :func:`audits.uniqueness.uniqueness_from_gram`), or "diagonal": each parameter by
    itself, D_j = Σ_p g_jp²/(Σ_{k≠j} g_kp² + λ), which needs no N × N matrix. λ = ``ridge``, if ``relative`` in units of
    the mean of ‖g_j‖² (ridge) or of g_jp² (diagonal); pinv has none.

    The model must be auditable (eval mode; :func:`audits.gradients.validate.made_auditable` returns a copy that is).
    It is not changed. The other arguments and the memory are those of :func:`audits.gradients.gram.gram`. Raises
    BadInput for an unknown mode, and as those functions do.

    Source: Abdelghafar, Aliakbarpour, Jermaine, arXiv 2510.10902, which is mode pinv; ridge is the default here since
    pinv gives 0 to a gradient that is orthogonal to all others, wherever parameters outnumber points.
    """
    data = tensor_set(data)
    check_modes((mode,))
    if mode == "diagonal":
        return _array(
            diagonal_uniqueness(
                model,
                data.x,
                data.y,
                ridge=ridge,
                relative=relative,
                loss=loss,
                chunk=chunk,
                memory=memory,
                dtype=dtype,
                device=device,
            )
        )
    K = gram(model, data.x, data.y, loss=loss, chunk=chunk, memory=memory, dtype=dtype, device=device)
    return uniqueness_from_gram(K, mode, ridge, relative)


def point_scores(
    model: nn.Module,
    data: TensorSet,
    modes: tuple[str, ...] = ("ridge", "diagonal"),
    ridge: float = 1e-3,
    relative: bool = True,
    *,
    chunk: int = CHUNK,
    memory: int = MEMORY,
    K: torch.Tensor | None = None,
) -> Scores:
    """Return loss, ‖g‖² and gradient uniqueness by every one of ``modes`` of all points of ``data`` under ``model``.

    The Gram matrix is made once for ridge and pinv, and not at all without them (``needs_gram``); ``K``: it, where it
    is known already. Other arguments and errors are those of :func:`gradient_uniqueness`, but that an uncertain rank is
    told in ``doubt`` and not raised.
    """
    check_modes(modes)
    gnq: dict[str, Floats] = {}
    doubt = ""
    if needs_gram(modes):
        K = gram(model, data.x, data.y, chunk=chunk, memory=memory) if K is None else K
        norm = _array(K.diagonal().clone())
        if "ridge" in modes:
            gnq["ridge"] = uniqueness_from_gram(K, "ridge", ridge, relative)
        if "pinv" in modes:
            sure = independent_uniqueness(checked_gram(K))
            if sure is None:
                report = report_from_gram(K)
                gnq["pinv"], doubt = report.gnq, report.doubt
            else:
                gnq["pinv"] = _array(sure)
        del K
    else:
        norm = _array(squared_norms(model, data.x, data.y, chunk=chunk, memory=memory))
    if "diagonal" in modes:
        # λ is given in units of the norms that are known already, else they would be computed again.
        penalty = ridge * mean_square(model, torch.from_numpy(norm)) if relative and norm.any() else ridge
        found = diagonal_uniqueness(model, data.x, data.y, ridge=penalty, relative=False, chunk=chunk, memory=memory)
        gnq["diagonal"] = _array(found)
    return Scores(losses(model, data), norm, {mode: gnq[mode] for mode in modes}, doubt)


def losses(model: nn.Module, data: TensorSet) -> Floats:
    """Return the cross-entropy of every point (N,) in nats, float64, in whatever mode ``model`` stands."""
    return _array(F.cross_entropy(logits(model, data.x).double(), data.y, reduction="none"))


def needs_gram(modes: tuple[str, ...]) -> bool:
    """Return whether any of ``modes`` is made from the Gram matrix; mode diagonal is not."""
    return bool(set(modes) & set(GRAM_MODES))


def check_modes(modes: tuple[str, ...]) -> None:
    """Raise BadInput for an unknown mode of gradient uniqueness."""
    for mode in modes:
        if mode not in MODES:
            raise BadInput(f"mode is {mode!r}{did_you_mean(str(mode), MODES)}; allowed: {', '.join(MODES)}")


def _array(values: torch.Tensor) -> Floats:
    found: Floats = values.cpu().numpy()
    return found
