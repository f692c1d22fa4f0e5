"""Gathering end to end on tiny networks: who draws, who is asked, what it costs, and that nobody is mixed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from audits.attacks import ATTACKS
from audits.attacks.evidence import Evidence, Walks
from audits.attacks.gather import (
    Group,
    Questions,
    ask_targets,
    gather_offline,
    gather_online,
    gather_posteriors,
    scaled,
)
from audits.attacks.search import SearchSettings, Shadows, random_walk, search
from audits.data.partition import Partition, Split, make_partition
from audits.data.toy2d import make
from audits.errors import BadInput
from audits.models import make_model
from audits.oracles import LabelOracle, label_oracle, posterior_oracle

SPLIT = Split(
    targets=2,
    train_size=30,
    target_pool=60,
    shadow_pool=120,
    test_pool=20,
    forget=0.3,
    candidates_forget=4,
    candidates_unseen=4,
    shadows=8,
    offline_shadows=4,
    targets_per_shadow_set=2,
)
STEPS = 3
SETTINGS = SearchSettings(epsilon=0.2, steps=STEPS, learning_rate=0.1)
WALK = 1 + 2 * 2 * STEPS
DATA = make(points=200)


def network(seed: int) -> nn.Module:
    model = make_model("mlp", {"hidden": [6]}).build((2,), 4, seed).double().eval().requires_grad_(False)
    return model


@dataclass
class Scene:
    """A two-target shadow set with random networks in place of trained ones."""

    partition: Partition
    questions: Questions
    groups: tuple[Group, Group]
    targets: dict[int, nn.Module]


@pytest.fixture(scope="module")
def scene() -> Scene:
    partition = make_partition(200, SPLIT, 0)
    asked = partition.candidates[0]
    rows = DATA.tensors(asked.ids)
    questions = Questions(rows.x.double(), rows.y, asked.ids, asked.target, (2,), None, seed=5, chunk=3)
    groups = []
    for group in (1, 2):
        members = partition.select("shadow", 0, group)
        original = [network(100 * group + i) for i in range(len(members))]
        unlearned = [network(100 * group + 50 + i) for i in range(len(members))]
        groups.append(Group(original, unlearned, partition.membership(members, asked.ids)))
    return Scene(partition, questions, (groups[0], groups[1]), {0: network(1), 1: network(2)})


def oracles(scene: Scene, budget: int | None = None) -> dict[int, LabelOracle]:
    return {index: label_oracle(model, budget) for index, model in scene.targets.items()}


def trace_of(scene: Scene, group: int):
    own, questions = scene.groups[group], scene.questions
    shadows = Shadows(own.original, own.unlearned, torch.from_numpy(own.inside), (2,))
    return search(shadows, questions.x, questions.y, questions.directions(), SETTINGS, value_range=None)


def says_true(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> bool:
    return bool(model(x[None]).argmax() == y)


def test_walks_are_those_of_each_groups_search_asked_of_the_other_group_and_of_the_own_target(scene: Scene) -> None:
    questions = scene.questions
    found = gather_online(scene.groups, oracles(scene), questions, SETTINGS)
    for kind in ("apollo", "random"):
        walks = found[kind]
        for g in (0, 1):
            judge, trace = scene.groups[1 - g], trace_of(scene, g)
            inputs = trace.inputs
            if kind == "random":
                inputs = random_walk(questions.x, questions.directions(), trace.radius, None)
            np.testing.assert_array_equal(walks.inside[g], judge.inside)
            np.testing.assert_allclose(walks.radius[g], trace.radius.numpy(), rtol=0, atol=1e-12)
            for k in range(len(questions.ids)):
                places = [questions.x[k], *inputs[k].flatten(0, 1)]
                target = scene.targets[int(questions.owner[k])]
                wanted = [says_true(target, place, questions.y[k]) for place in places]
                assert walks.target[g, k].tolist() == wanted
                for i, model in enumerate(judge.unlearned):
                    wanted = [says_true(model, place, questions.y[k]) for place in places]
                    assert walks.pseudo[g, i, k].tolist() == wanted


def test_the_confidence_is_the_mean_over_the_shadows_that_drew_the_walk_and_never_saw_the_point(scene: Scene) -> None:
    walks = gather_online(scene.groups, oracles(scene), scene.questions, SETTINGS)["apollo"]
    for g in (0, 1):
        trace, own = trace_of(scene, g), scene.groups[g]
        for k in range(len(scene.questions.ids)):
            outside = [i for i in range(len(own.original)) if not own.inside[i, k]]
            for way in range(2):
                for t in range(STEPS):
                    values = [
                        own.original[i](trace.inputs[k, way, t][None]).softmax(1)[0, scene.questions.y[k]].item()
                        for i in outside
                    ]
                    assert abs(walks.confidence[g, k, way, t] - np.mean(values)) < 1e-10


def test_the_target_is_asked_once_at_x_and_once_a_step_of_either_kind(scene: Scene) -> None:
    asked = oracles(scene)
    walks = gather_online(scene.groups, asked, scene.questions, SETTINGS)
    for owner, oracle in asked.items():
        own = scene.questions.owner == owner
        assert set(oracle.counter.asked(scene.questions.ids[own]).tolist()) == {1 + 2 * 2 * STEPS + 2 * 2 * STEPS}
        assert set(oracle.counter.asked(scene.questions.ids[~own]).tolist()) == {0}
    for kind in walks.values():
        assert kind.queries.tolist() == [WALK] * len(scene.questions.ids)


def test_a_budget_below_the_cost_is_refused(scene: Scene) -> None:
    enough = 2 * WALK - 1
    gather_online(scene.groups, oracles(scene, budget=enough), scene.questions, SETTINGS)
    with pytest.raises(BadInput, match="budget"):
        gather_online(scene.groups, oracles(scene, budget=enough - 1), scene.questions, SETTINGS)


def constant(label: int) -> LabelOracle:
    return LabelOracle(lambda points: torch.full((len(points),), label, dtype=torch.int64))


def test_each_candidate_is_asked_of_its_own_target(scene: Scene) -> None:
    questions = scene.questions
    assert set(questions.owner) == {0, 1}
    found = ask_targets({0: constant(0), 1: constant(1)}, questions.x[:, None], questions)
    assert found[:, 0].tolist() == questions.owner.tolist()
    walks = gather_online(scene.groups, {0: constant(0), 1: constant(1)}, questions, SETTINGS)["apollo"]
    wanted = (questions.y.numpy() == questions.owner)[None, :, None]
    np.testing.assert_array_equal(walks.target, np.broadcast_to(wanted, walks.target.shape))


def test_a_candidate_whose_target_is_absent_is_an_error_not_a_made_up_answer(scene: Scene) -> None:
    group, questions = scene.groups[0], scene.questions
    with pytest.raises(KeyError, match="1"):
        ask_targets({0: constant(0)}, questions.x[:, None], questions)
    with pytest.raises(KeyError, match="1"):
        gather_posteriors(group.unlearned, group.inside, {0: posterior_oracle(scene.targets[0])}, questions)


def test_directions_belong_to_the_point_whatever_the_shard(scene: Scene) -> None:
    whole = scene.questions
    rows = slice(5, 9)
    part = Questions(whole.x[rows], whole.y[rows], whole.ids[rows], whole.owner[rows], (2,), None, seed=5)
    assert torch.equal(part.directions(), whole.directions()[rows])
    assert torch.allclose(whole.directions().norm(dim=-1), torch.ones(16, 2, dtype=torch.float64), atol=1e-6)
    other = Questions(whole.x, whole.y, whole.ids, whole.owner, (2,), None, seed=6)
    assert not torch.equal(other.directions(), whole.directions())


def test_offline_walks_are_drawn_once_and_judged_by_the_other_half_of_every_method(scene: Scene) -> None:
    questions = scene.questions
    searchers = ([network(300), network(301)], [network(302), network(303)])
    judges = {
        "identity": searchers,
        "scrub": ([network(310), network(311)], [network(312), network(313)]),
    }
    asked = {method: oracles(scene) for method in judges}
    found = gather_offline(searchers, judges, asked, questions, SETTINGS)
    for method, walks in found.items():
        assert not walks.inside.any()
        for oracle in asked[method].values():
            assert set(oracle.counter.asked(questions.ids).tolist()) <= {0, WALK}
        for g in (0, 1):
            nothing = torch.zeros((2, 16), dtype=torch.bool)
            trace = search(
                Shadows(searchers[g], [], nothing, (2,)),
                questions.x,
                questions.y,
                questions.directions(),
                SETTINGS,
                offline=True,
                value_range=None,
            )
            np.testing.assert_allclose(walks.confidence[g], trace.confidence.mean(0).numpy(), rtol=0, atol=1e-12)
            for k in range(16):
                places = [questions.x[k], *trace.inputs[k].flatten(0, 1)]
                for i, model in enumerate(judges[method][1 - g]):
                    wanted = [says_true(model, place, questions.y[k]) for place in places]
                    assert walks.pseudo[g, i, k].tolist() == wanted


def test_posteriors_are_those_of_every_shadow_and_of_the_own_target(scene: Scene) -> None:
    questions = scene.questions
    models = [*scene.groups[0].unlearned, *scene.groups[1].unlearned]
    inside = np.concatenate([group.inside for group in scene.groups])
    asked = {index: posterior_oracle(model) for index, model in scene.targets.items()}
    found = gather_posteriors(models, inside, asked, questions)
    for k in range(16):
        x, y = questions.x[k : k + 1], questions.y[k : k + 1]
        for i, model in enumerate(models):
            assert abs(found.shadow[i, k] - scaled(model(x).log_softmax(1), y)[0]) < 1e-10
        target = scene.targets[int(questions.owner[k])]
        assert abs(found.target[k] - scaled(target(x).log_softmax(1), y)[0]) < 1e-10
    assert found.queries.tolist() == [1] * 16
    for owner, oracle in asked.items():
        assert oracle.counter.asked(questions.ids).tolist() == (questions.owner == owner).astype(int).tolist()


def test_every_attack_judges_what_was_gathered(scene: Scene) -> None:
    searchers = ([network(300), network(301)], [network(302), network(303)])
    offline = gather_offline(searchers, {"x": searchers}, {"x": oracles(scene)}, scene.questions, SETTINGS)["x"]
    models = [*scene.groups[0].unlearned, *scene.groups[1].unlearned]
    posteriors = gather_posteriors(
        models,
        np.concatenate([group.inside for group in scene.groups]),
        {index: posterior_oracle(model) for index, model in scene.targets.items()},
        scene.questions,
    )
    online: dict[str, Walks] = gather_online(scene.groups, oracles(scene), scene.questions, SETTINGS)
    for name in ATTACKS:
        finding = ATTACKS[name]().judge(Evidence(online, offline, posteriors))
        assert finding.score.shape == (16,) and np.isfinite(finding.score).all()
