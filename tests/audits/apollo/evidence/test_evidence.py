"""Evidence end to end on tiny networks: who is asked, what it costs, and that nobody is mixed up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, Evidence, Posteriors, Questions, in_order
from audits.apollo.evidence.asking import ask_targets
from audits.apollo.evidence.boundary import Distances
from audits.apollo.evidence.ladder import LEVELS, Positions
from audits.apollo.evidence.plus import Standings, ladder_sizes
from audits.queries.oracles import LabelOracle, PosteriorOracle, logit_oracle, posterior_oracle
from tests.audits.apollo.evidence.scene import (
    BUDGET,
    CANDIDATES,
    LABEL_KINDS,
    SETTINGS,
    WALK,
    Scene,
    make_scene,
    shorten_searches,
)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene()


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_searches(monkeypatch)


def test_the_published_costs_are_those_of_the_methods() -> None:
    costs = {name: KINDS[name].queries(SETTINGS, BUDGET) for name in LABEL_KINDS}
    assert {name: costs[name] for name in ("point", "yoqo", "oslo")} == {"point": 1, "yoqo": 2, "oslo": 2}
    assert {costs[name] for name in ("apollo", "random", "offline")} == {WALK}
    assert costs["ladder"] == 4
    assert max(costs.values()) <= BUDGET


def constant(label: int) -> LabelOracle:
    return LabelOracle(lambda points: torch.full((len(points),), label, dtype=torch.int64))


def test_each_candidate_is_asked_of_its_own_target(scene: Scene) -> None:
    questions = scene.questions
    assert set(questions.owner) == {0, 1}
    found = ask_targets({0: constant(0), 1: constant(1)}, questions.x[:, None], questions)
    assert found[:, 0].tolist() == questions.owner.tolist()
    wanted = questions.y.numpy() == questions.owner
    for name in LABEL_KINDS:
        part = scene.gather(name, labels={0: constant(0), 1: constant(1)})
        if isinstance(part, Distances):
            np.testing.assert_array_equal(part.target, np.where(wanted, np.inf, -np.inf))
        elif isinstance(part, Positions):
            np.testing.assert_array_equal(part.target, len(LEVELS) * wanted)
        elif isinstance(part, Standings):
            rungs = 2 ** ladder_sizes(SETTINGS)[1] - 1
            np.testing.assert_array_equal(
                part.target, np.broadcast_to(rungs * wanted[None, :, None], part.target.shape)
            )
        else:
            target = part.arrays()["target"]
            np.testing.assert_array_equal(target, np.broadcast_to(wanted[None, :, None], target.shape))


def test_posteriors_of_an_absent_target_are_an_error_not_made_up(scene: Scene) -> None:
    with pytest.raises(KeyError, match="1"):
        scene.gather("posteriors", posteriors={0: posterior_oracle(scene.targets[0])})


def test_directions_belong_to_the_point_whatever_the_shard(scene: Scene) -> None:
    whole = scene.questions
    rows = slice(5, 9)
    part = Questions(whole.x[rows], whole.y[rows], whole.ids[rows], whole.owner[rows], (2,), None, seed=5)
    assert torch.equal(part.directions(), whole.directions()[rows])
    assert torch.allclose(whole.directions().norm(dim=-1), torch.ones(16, 2, dtype=torch.float64), atol=1e-6)
    other = Questions(whole.x, whole.y, whole.ids, whole.owner, (2,), None, seed=6)
    assert not torch.equal(other.directions(), whole.directions())
    assert whole.directions(5, "more").shape == (16, 5, 2)


def test_posteriors_are_those_of_every_shadow_before_and_after_and_of_the_own_target(scene: Scene) -> None:
    asked = {index: posterior_oracle(model) for index, model in scene.targets.items()}
    found = scene.gather("posteriors", posteriors=asked)
    assert isinstance(found, Posteriors)
    models = {
        name: [model for group in scene.online for model in getattr(group, name)] for name in ("original", "unlearned")
    }
    questions = scene.questions
    for k in range(CANDIDATES):
        x = questions.x[k : k + 1]
        for i in range(len(models["original"])):
            for answers, name in ((found.original, "original"), (found.shadow, "unlearned")):
                wanted = models[name][i](x).log_softmax(1)[0].numpy()
                np.testing.assert_allclose(answers[i, k], wanted, rtol=0, atol=1e-6)
        wanted = scene.targets[int(questions.owner[k])](x).log_softmax(1)[0].numpy()
        np.testing.assert_allclose(found.target[k], wanted, rtol=0, atol=1e-6)
    assert found.labels.tolist() == questions.y.tolist()
    assert found.queries.tolist() == [1] * CANDIDATES
    for owner, oracle in asked.items():
        assert oracle.counter.queries_spent(questions.ids).tolist() == (questions.owner == owner).astype(int).tolist()


def test_kinds_come_behind_what_they_read() -> None:
    assert in_order(["random", "point"]) == ("apollo", "random", "point")
    assert in_order(["apollo", "random", "apollo"]) == ("apollo", "random")


def test_every_attack_judges_what_was_gathered(scene: Scene) -> None:
    oracles: dict[str, dict[int, PosteriorOracle]] = {
        "posteriors": {index: posterior_oracle(model) for index, model in scene.targets.items()},
        "logits": {index: logit_oracle(model) for index, model in scene.targets.items()},
    }
    parts = {name: scene.gather(name, **oracles) for name in KINDS}
    truth = scene.partition.candidates[0].forgotten
    for name in ATTACKS:
        finding = ATTACKS[name]().judge(Evidence({kind: parts[kind] for kind in ATTACKS[name].reads}, truth))
        assert finding.score.shape == (CANDIDATES,) and np.isfinite(finding.score).all()
