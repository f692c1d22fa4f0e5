"""Kinds of evidence beyond labels: who is asked what, how often, and that shards make a whole."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from audits.apollo.evidence import KINDS, Case, Group, Questions, SearchSettings
from audits.apollo.evidence.population import Population
from audits.models import make_model
from audits.queries.oracles import logit_oracle, posterior_oracle
from audits.signals.confidence import scaled

SHAPE, CLASSES = (3,), 4


def network(seed: int) -> nn.Module:
    return make_model("mlp", {"hidden": [5]}).build(SHAPE, CLASSES, seed).eval().requires_grad_(False)


def log_odds(log_probabilities: np.ndarray, label: int) -> float:
    p = np.exp(log_probabilities.astype(float))
    return float(np.log(p[label] / np.delete(p, label).sum()))


def asked(seed: int, ids: list[int], owner: list[int]) -> Questions:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(ids), 3, generator=generator)
    y = torch.randint(0, CLASSES, (len(ids),), generator=generator)
    return Questions(x, y, np.array(ids), np.array(owner), SHAPE, None, seed=0)


def case(access: str) -> tuple[Case, dict[int, nn.Module]]:
    rng = np.random.default_rng(0)
    targets = {3: network(1), 8: network(2)}
    groups = []
    for number in (1, 2):
        draws = rng.integers(0, 3, (2, 5))
        original, unlearned = ([network(100 * number + 10 * step + i) for i in range(2)] for step in (0, 1))
        groups.append(Group(original, unlearned, draws == 0, draws == 1))
    open_oracle = {"posteriors": posterior_oracle, "logits": logit_oracle}[access]
    oracles = {access: {index: open_oracle(model, budget=1) for index, model in targets.items()}}
    questions = asked(5, [11, 12, 13, 14, 15], [8, 3, 8, 8, 3])
    population = asked(6, [21, 22, 23], [-1, -1, -1])
    return Case(questions, SearchSettings(), online=tuple(groups), population=population, **oracles), targets


def models_of(made: Case, which: str) -> list[nn.Module]:
    return [model for group in made.shadows for model in getattr(group, which)]


def test_logits_are_those_of_the_true_class_of_every_shadow_and_of_the_own_target() -> None:
    made, targets = case("logits")
    part, questions = KINDS["logits"]().gather(made), made.questions
    for k in range(5):
        x, y = questions.x[k : k + 1], int(questions.y[k])
        assert part.target[k] == pytest.approx(float(targets[int(questions.owner[k])](x)[0, y]), abs=1e-6)
        for name, models in (("original", models_of(made, "original")), ("shadow", models_of(made, "unlearned"))):
            wanted = [float(model(x)[0, y]) for model in models]
            np.testing.assert_allclose(getattr(part, name)[:, k], wanted, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(part.inside, np.concatenate([group.inside for group in made.shadows]))
    np.testing.assert_array_equal(part.outside, np.concatenate([group.outside for group in made.shadows]))
    assert {each.dtype for each in (part.original, part.shadow, part.target)} == {np.dtype(np.float32)}
    assert part.queries.tolist() == [1] * 5


def test_the_population_is_asked_once_of_every_target_and_shadow() -> None:
    made, targets = case("posteriors")
    part, points = KINDS["population"]().gather(made), made.asked_population
    assert part.index.tolist() == [3, 8] and part.owner.tolist() == made.questions.owner.tolist()
    for z in range(3):
        x, y = points.x[z : z + 1], int(points.y[z])
        wanted = [float(targets[index](x).log_softmax(1)[0, y]) for index in (3, 8)]
        np.testing.assert_allclose(part.target[:, z], wanted, rtol=0, atol=1e-5)
        wanted = [float(model(x).log_softmax(1)[0, y]) for model in models_of(made, "unlearned")]
        np.testing.assert_allclose(part.shadow[:, z], wanted, rtol=0, atol=1e-5)
    assert part.shadow.dtype == part.target.dtype == np.float32
    for oracle in made.posteriors.values():
        assert oracle.counter.queries_spent(points.ids).tolist() == [1] * 3
        assert oracle.counter.queries_spent(made.questions.ids).tolist() == [0] * 5


def test_shards_of_the_population_join_to_each_target_once() -> None:
    made, _ = case("posteriors")
    whole = KINDS["population"]().gather(made)
    shards = []
    for rows in ([0], [1, 2], [3, 4]):
        piece = dataclasses.replace(
            made.questions,
            x=made.questions.x[rows],
            y=made.questions.y[rows],
            ids=made.questions.ids[rows],
            owner=made.questions.owner[rows],
        )
        shards.append(KINDS["population"]().gather(dataclasses.replace(case("posteriors")[0], questions=piece)))
    assert shards[0].index.tolist() == [8]
    joined = Population.joined(shards)
    for field, values in whole.arrays().items():
        np.testing.assert_array_equal(getattr(joined, field), values)


def test_posteriors_hold_the_shadows_before_and_after_unlearning() -> None:
    made, targets = case("posteriors")
    part, questions = KINDS["posteriors"]().gather(made), made.questions
    for name, which in (("original", "original"), ("shadow", "unlearned")):
        wanted = np.stack([model(questions.x).log_softmax(1).numpy() for model in models_of(made, which)])
        np.testing.assert_allclose(getattr(part, name), wanted, rtol=0, atol=1e-5)
    wanted = [targets[int(questions.owner[k])](questions.x[k : k + 1]).log_softmax(1)[0].numpy() for k in range(5)]
    np.testing.assert_allclose(part.target, wanted, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(part.labels, questions.y.numpy())
    np.testing.assert_allclose(
        scaled(part.target, part.labels),
        [log_odds(part.target[k], int(part.labels[k])) for k in range(5)],
        rtol=0,
        atol=1e-6,
    )
