"""Gather evidence: run the searches of both groups, ask pseudo-targets and targets along the walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from audits.attacks.evidence import Posteriors, Walks
from audits.attacks.search import SearchSettings, Shadows, Trace, length, random_walk, search
from audits.oracles import LabelOracle, PosteriorOracle, label_oracle, posterior_oracle
from audits.seeds import derive_seed, torch_generator

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Questions:
    """The candidates of one shard: ``x`` (K, D) flattened floats, ``y`` (K,), ``ids`` (K,), ``owner`` (K,) the target
    that each is asked of; ``shape`` of one point, ``value_range`` of the inputs, ``seed`` of the random directions,
    ``chunk`` of candidates through a model at once."""

    x: torch.Tensor
    y: torch.Tensor
    ids: Ids
    owner: Ids
    shape: tuple[int, ...]
    value_range: tuple[float, float] | None
    seed: int
    chunk: int = 128

    def directions(self) -> torch.Tensor:
        """Return (K, 2, D) unit vectors, drawn from each point's own generator."""
        drawn = [
            torch.randn(2, self.x.shape[1], generator=torch_generator(derive_seed(self.seed, "direction", int(point))))
            for point in self.ids
        ]
        way = torch.stack(drawn).to(self.x)
        return way / length(way)


@dataclass(frozen=True)
class Group:
    """The shadows of one half: ``original`` and ``unlearned`` models and ``inside`` (m, K) bool."""

    original: Sequence[nn.Module]
    unlearned: Sequence[nn.Module]
    inside: NDArray[np.bool_]


def gather_online(
    groups: tuple[Group, Group], oracles: Mapping[int, LabelOracle], questions: Questions, settings: SearchSettings
) -> dict[str, Walks]:
    """Search with each group, ask the other group's unlearned shadows and the targets; return walks by kind.

    Kinds: "apollo" (the search) and "random" (random directions at the radii that the search travelled). The label at
    x is asked of a target once and stands in both.
    """
    way = questions.directions()
    traces = []
    for group in groups:
        inside = torch.from_numpy(group.inside).to(questions.x.device)
        shadows = Shadows(group.original, group.unlearned, inside, questions.shape)
        traces.append(
            search(
                shadows,
                questions.x,
                questions.y,
                way,
                settings,
                value_range=questions.value_range,
                chunk=questions.chunk,
            )
        )
    random = [random_walk(questions.x, way, trace.radius, questions.value_range) for trace in traces]
    judges = (groups[1], groups[0])
    at_x = ask_targets(oracles, questions.x[:, None], questions)
    return {
        kind: collect(points, traces, judges, (groups[0].inside, groups[1].inside), at_x, oracles, questions)
        for kind, points in (("apollo", [trace.inputs for trace in traces]), ("random", random))
    }


def gather_offline(
    searchers: tuple[Sequence[nn.Module], Sequence[nn.Module]],
    judges: Mapping[str, tuple[Sequence[nn.Module], Sequence[nn.Module]]],
    oracles: Mapping[str, Mapping[int, LabelOracle]],
    questions: Questions,
    settings: SearchSettings,
) -> dict[str, Walks]:
    """Search once with the offline shadows of each group and ask every unlearning method's models; walks by method.

    ``searchers``: original offline shadows of both groups; ``judges[method]``: their unlearned versions, which serve
    as pseudo-targets for the other group's walk; ``oracles[method]``: access to that method's targets.
    """
    way = questions.directions()
    traces = []
    for models in searchers:
        nothing = torch.zeros((len(models), len(questions.ids)), dtype=torch.bool, device=questions.x.device)
        traces.append(
            search(
                Shadows(models, [], nothing, questions.shape),
                questions.x,
                questions.y,
                way,
                settings,
                offline=True,
                value_range=questions.value_range,
                chunk=questions.chunk,
            )
        )
    walks = {}
    for method, (first, second) in judges.items():
        empty = [np.zeros((len(models), len(questions.ids)), dtype=bool) for models in (first, second)]
        groups = (Group([], second, empty[1]), Group([], first, empty[0]))
        at_x = ask_targets(oracles[method], questions.x[:, None], questions)
        points = [trace.inputs for trace in traces]
        drawn = (empty[0], empty[1])
        walks[method] = collect(points, traces, groups, drawn, at_x, oracles[method], questions)
    return walks


def collect(
    points: Sequence[torch.Tensor],
    traces: Sequence[Trace],
    judges: tuple[Group, Group],
    searched: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    at_x: torch.Tensor,
    oracles: Mapping[int, LabelOracle],
    questions: Questions,
) -> Walks:
    """Ask the judges of each group and the targets at ``points`` (per group (K, 2, T, D)) and at x."""
    pseudo, target, confidence = [], [], []
    for group, trace, judge, drawn in zip(points, traces, judges, searched, strict=True):
        walk = group.flatten(1, 2)
        everywhere = torch.cat([questions.x[:, None], walk], dim=1)
        pseudo.append(
            np.stack([says_true_label(label_oracle(model), everywhere, questions) for model in judge.unlearned])
        )
        labels = torch.cat([at_x, ask_targets(oracles, walk, questions)], dim=1)
        target.append((labels == questions.y[:, None]).cpu().numpy())
        weight = (~drawn)[:, :, None, None]
        seen = trace.confidence.double().cpu().numpy()
        confidence.append((seen * weight).sum(0) / weight.sum(0))
    queries = np.full(len(questions.ids), 1 + sum(group.shape[1] * group.shape[2] for group in points), dtype=np.int32)
    return Walks(
        pseudo=np.stack(pseudo),
        inside=np.stack([judge.inside for judge in judges]),
        target=np.stack(target),
        confidence=np.stack(confidence),
        radius=np.stack([trace.radius.double().cpu().numpy() for trace in traces]),
        queries=queries,
    )


def says_true_label(oracle: LabelOracle, points: torch.Tensor, questions: Questions) -> NDArray[np.bool_]:
    """Return (K, Q) bool: does the model answer the true label at ``points`` (K, Q, D)?"""
    labels = oracle.ask(points.unflatten(-1, questions.shape), questions.ids)
    found: NDArray[np.bool_] = (labels == questions.y[:, None]).cpu().numpy()
    return found


def ask_targets(oracles: Mapping[int, LabelOracle], points: torch.Tensor, questions: Questions) -> torch.Tensor:
    """Return the labels (K, Q) that each candidate's own target gives at ``points`` (K, Q, D)."""
    labels = torch.empty(points.shape[:2], dtype=torch.int64, device=points.device)
    for owner in np.unique(questions.owner):
        rows = np.flatnonzero(questions.owner == owner)
        labels[rows] = oracles[int(owner)].ask(points[rows].unflatten(-1, questions.shape), questions.ids[rows])
    return labels


def gather_posteriors(
    unlearned: Sequence[nn.Module],
    inside: NDArray[np.bool_],
    oracles: Mapping[int, PosteriorOracle],
    questions: Questions,
) -> Posteriors:
    """Return the logit-scaled confidences at x of the unlearned shadows and of each candidate's target."""
    x = questions.x.unflatten(-1, questions.shape)
    shadow = [scaled(posterior_oracle(model).ask(x, questions.ids), questions.y) for model in unlearned]
    target = np.empty(len(questions.ids))
    for owner in np.unique(questions.owner):
        rows = np.flatnonzero(questions.owner == owner)
        target[rows] = scaled(oracles[int(owner)].ask(x[rows], questions.ids[rows]), questions.y[rows])
    return Posteriors(np.stack(shadow), inside, target, np.ones(len(questions.ids), dtype=np.int32))


def scaled(log_probability: torch.Tensor, y: torch.Tensor) -> NDArray[np.float64]:
    """Return log p_y − log Σ_{j≠y} p_j (N,) of log-probabilities (N, classes): stable where p_y is near 1 or 0."""
    own = log_probability.gather(1, y[:, None])
    rest = log_probability.scatter(1, y[:, None], -torch.inf).logsumexp(1)
    found: NDArray[np.float64] = (own.squeeze(1) - rest).double().cpu().numpy()
    return found
