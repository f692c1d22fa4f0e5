"""Walks end to end on tiny networks: which half draws them, who is asked along them, and what is stored of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, Evidence, Group, Walks
from audits.apollo.evidence import adversarial as adversarial_file
from audits.apollo.evidence.search import random_walk, search
from audits.apollo.evidence.shadows import Shadows
from tests.audits.apollo.evidence.scene import CANDIDATES, SETTINGS, STEPS, Scene, make_scene, shorten_searches
from tests.cases.families import thinned


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene()


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_searches(monkeypatch)


def trace_of(scene: Scene, group: Group, *, offline: bool = False):
    asked = scene.questions
    shadows = Shadows(
        group.original, group.unlearned, torch.from_numpy(group.inside), (2,), torch.from_numpy(group.outside)
    )
    return search(shadows, asked.x, asked.y, asked.directions(), SETTINGS, offline=offline, value_range=None)


def says_true(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> bool:
    return bool(model(x[None]).argmax() == y)


def check_answers(scene: Scene, walks: Walks, g: int, inputs: torch.Tensor, judge: Group, *, at_x: bool = True) -> None:
    """Assert that the answers along ``inputs`` (K, D, T, 2) are those of the own target and of every judge."""
    asked = scene.questions
    np.testing.assert_array_equal(walks.inside[g], judge.inside)
    np.testing.assert_array_equal(walks.outside[g], judge.outside)
    for k in range(CANDIDATES):
        places = [*([asked.x[k]] if at_x else []), *inputs[k].flatten(0, 1)]
        target = scene.targets[int(asked.owner[k])]
        assert walks.target[g, k].tolist() == [says_true(target, place, asked.y[k]) for place in places]
        for i, model in enumerate(judge.unlearned):
            assert walks.pseudo[g, i, k].tolist() == [says_true(model, place, asked.y[k]) for place in places]


@pytest.mark.parametrize("name", thinned(["apollo", "random"], ["apollo"]))
def test_walks_are_those_of_each_halfs_search_asked_of_the_other_half_and_of_the_own_target(
    scene: Scene, name: str
) -> None:
    walks = scene.walks(name)
    for g in (0, 1):
        trace = trace_of(scene, scene.online[g])
        inputs = trace.inputs
        if name == "random":
            inputs = random_walk(scene.questions.x, scene.questions.directions(), trace.radius, None)
        np.testing.assert_allclose(walks.radius[g], trace.radius.numpy(), rtol=0, atol=1e-12)
        check_answers(scene, walks, g, inputs, scene.online[1 - g])


def test_the_confidence_is_the_mean_over_the_shadows_that_drew_the_walk_and_never_saw_the_point(scene: Scene) -> None:
    walks = scene.walks("apollo")
    for g, own in enumerate(scene.online):
        trace = trace_of(scene, own)
        for k in range(CANDIDATES):
            outside = np.flatnonzero(own.outside[:, k])
            for way in range(2):
                for t in range(STEPS):
                    values = [
                        own.original[i](trace.inputs[k, way, t][None]).softmax(1)[0, scene.questions.y[k]].item()
                        for i in outside
                    ]
                    assert abs(walks.confidence[g, k, way, t] - np.mean(values)) < 1e-10


def kept_by_some(group: Group) -> Group:
    """Return the group with one inside shadow of every candidate that kept it: neither inside nor outside."""
    first = group.inside & (np.cumsum(group.inside, axis=0) == 1)
    return replace(group, inside=group.inside & ~first)


def test_a_shadow_that_kept_a_candidate_draws_nothing_and_judges_nothing(scene: Scene) -> None:
    groups = (kept_by_some(scene.online[0]), kept_by_some(scene.online[1]))
    walks = scene.walks("apollo", online=groups)
    assert all((~(group.inside | group.outside)).any(0).all() for group in groups)
    for g in (0, 1):
        trace = trace_of(scene, groups[g])
        np.testing.assert_allclose(walks.radius[g], trace.radius.numpy(), rtol=0, atol=1e-12)
        check_answers(scene, walks, g, trace.inputs, groups[1 - g])
    changed = replace(walks, pseudo=np.where((walks.inside | walks.outside)[..., None], walks.pseudo, ~walks.pseudo))
    for name in ("apollo", "apollo_no_fit", "apollo_under", "apollo_over"):
        one, other = (ATTACKS[name]().judge(Evidence({"apollo": each})) for each in (walks, changed))
        np.testing.assert_array_equal(one.score, other.score)
        np.testing.assert_array_equal(one.null, other.null)


def test_offline_walks_are_drawn_once_and_judged_by_the_other_half_of_every_method(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []

    def counted(*arguments: object, **named: object) -> object:
        searches.append(1)
        return search(*arguments, **named)

    monkeypatch.setattr(adversarial_file, "search", counted)
    methods = {
        "identity": tuple(replace(group, unlearned=group.original) for group in scene.offline),
        "scrub": scene.offline,
    }
    unread = tuple(replace(group, unlearned=[]) for group in scene.offline)
    trace = KINDS["offline"]().trace(scene.case("offline", trace={"": np.empty(0)}, offline=unread))
    assert len(searches) == 2
    for groups in methods.values():
        unsearched = tuple(replace(group, original=[]) for group in groups)
        walks = scene.walks("offline", offline=unsearched, trace=trace)
        assert not walks.inside.any() and walks.outside.all()
        for g in (0, 1):
            drawn = trace_of(scene, scene.offline[g], offline=True)
            np.testing.assert_allclose(walks.confidence[g], drawn.confidence.mean(0).numpy(), rtol=0, atol=1e-12)
            check_answers(scene, walks, g, drawn.inputs, groups[1 - g])
    assert len(searches) == 2


@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].traced])
def test_a_trace_reads_original_shadows_alone(scene: Scene, name: str) -> None:
    def unlearned_gone(groups: tuple[Group, Group]) -> tuple[Group, Group]:
        first, second = (replace(group, unlearned=[]) for group in groups)
        return first, second

    case = replace(scene, offline=unlearned_gone(scene.offline)).case(name)
    for key, values in case.trace.items():
        np.testing.assert_array_equal(values, scene.case(name).trace[key])
