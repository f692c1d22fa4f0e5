"""Asking: labels of pseudo-targets and of targets along walks, posteriors at points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from audits.apollo.evidence.base import Case, Group, Questions
from audits.apollo.evidence.parts import Walks
from audits.arrays import Floats
from audits.queries.oracles import LabelOracle, PosteriorOracle, label_oracle
from audits.queries.together import together

ASKED_AT_ONCE = 1024


def walks_along(
    points: Sequence[torch.Tensor],
    judges: Sequence[Group],
    confidence: Sequence[Floats],
    case: Case,
    *,
    at_x: bool = True,
) -> Walks:
    """Ask the ``judges`` of each walk and the targets at ``points`` (per walk (K, D, T, dimensions)); and at x.

    ``judges[g]`` are the shadows that did not draw walk g; ``confidence[g]``: (K, D, T) of those that did.
    """
    asked = case.questions
    head = ask_targets(case.labels, asked.x[:, None], asked) if at_x else None
    pseudo, target, radius = [], [], []
    for group, judge in zip(points, judges, strict=True):
        walk = group.flatten(1, 2)
        everywhere = torch.cat([asked.x[:, None], walk], dim=1) if at_x else walk
        pseudo.append(say_true_label(judge.unlearned, everywhere, asked))
        labels = ask_targets(case.labels, walk, asked)
        labels = labels if head is None else torch.cat([head, labels], dim=1)
        target.append((labels == asked.y[:, None]).cpu().numpy())
        radius.append(distances(group, asked.x))
    queries = int(at_x) + sum(group.shape[1] * group.shape[2] for group in points)
    return Walks(
        pseudo=np.stack(pseudo),
        inside=np.stack([judge.inside for judge in judges]),
        outside=np.stack([judge.outside for judge in judges]),
        target=np.stack(target),
        confidence=np.stack(list(confidence)),
        radius=np.stack(radius),
        queries=np.full(len(asked.ids), queries, dtype=np.int32),
    )


def distances(points: torch.Tensor, x: torch.Tensor) -> Floats:
    """Return the L2 distances (K, D, T) of ``points`` (K, D, T, dimensions) from ``x`` (K, dimensions), in float64."""
    found: Floats = torch.linalg.vector_norm((points - x[:, None, None]).double(), dim=-1).cpu().numpy()
    return found


def say_true_label(models: Sequence[nn.Module], points: torch.Tensor, questions: Questions) -> NDArray[np.bool_]:
    """Return (m, K, Q) bool: does each model answer the true label at ``points`` (K, Q, dimensions)?"""
    flat = points.flatten(0, 1)
    at_once = together(models, questions.shape, flat)
    if at_once is None:
        return np.stack([says_true_label(label_oracle(model), points, questions) for model in models])
    labels = at_once.same(flat.unflatten(-1, questions.shape)).reshape(len(models), *points.shape[:2])
    found: NDArray[np.bool_] = (labels == questions.y[:, None]).cpu().numpy()
    return found


def says_true_label(oracle: LabelOracle, points: torch.Tensor, questions: Questions) -> NDArray[np.bool_]:
    """Return (K, Q) bool: does the model answer the true label at ``points`` (K, Q, dimensions)?"""
    labels = oracle.ask(points.unflatten(-1, questions.shape), questions.ids)
    found: NDArray[np.bool_] = (labels == questions.y[:, None]).cpu().numpy()
    return found


def ask_targets(oracles: Mapping[int, LabelOracle], points: torch.Tensor, questions: Questions) -> torch.Tensor:
    """Return the labels (K, Q) that each candidate's own target gives at ``points`` (K, Q, dimensions)."""
    labels = torch.empty(points.shape[:2], dtype=torch.int64, device=points.device)
    for owner in np.unique(questions.owner):
        rows = np.flatnonzero(questions.owner == owner)
        labels[rows] = oracles[int(owner)].ask(points[rows].unflatten(-1, questions.shape), questions.ids[rows])
    return labels


@torch.no_grad()
def log_probabilities(model: nn.Module, questions: Questions) -> NDArray[np.float32]:
    """Return a shadow's log-probabilities (K, classes) at x, worked out in float64, kept in float32."""
    x = questions.x.unflatten(-1, questions.shape)
    found = torch.cat([F.log_softmax(model(part).double(), dim=1) for part in x.split(ASKED_AT_ONCE)])
    return np.asarray(found.cpu().numpy(), dtype=np.float32)


def target_log_probabilities(oracles: Mapping[int, PosteriorOracle], questions: Questions) -> NDArray[np.float32]:
    """Return the log-probabilities (K, classes) that each candidate's own target gives at x."""
    x = questions.x.unflatten(-1, questions.shape)
    found: NDArray[np.float32] | None = None
    for owner in np.unique(questions.owner):
        rows = np.flatnonzero(questions.owner == owner)
        answer = oracles[int(owner)].ask(x[rows], questions.ids[rows]).cpu().numpy()
        if found is None:
            found = np.empty((len(questions.ids), answer.shape[1]), dtype=np.float32)
        found[rows] = answer
    assert found is not None, "a shard holds at least one candidate"
    return found
