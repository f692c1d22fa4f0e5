"""The ladder: levels of the shadows' log-odds, a model's place by bisection, and the ratio that weighs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import nn

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, Case, Group, Questions, SearchSettings
from audits.apollo.evidence.ladder import LABELS, LEVELS, Positions, path, position
from audits.apollo.evidence.plus import of_one
from audits.queries.oracles import label_oracle
from tests.audits.apollo.evidence.scene import Scene, make_scene
from tests.audits.apollo.evidence.small_networks import CLASSES
from tests.cases.families import as_one
from tests.cases.synthetic_evidence import evidence_for

POINTS = 6


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene()


def alike(count: int) -> list[nn.Module]:
    """Return linear models that differ a little, so that every level is reached."""
    torch.manual_seed(4)
    found = [nn.Linear(6, CLASSES).double().requires_grad_(False) for _ in range(count)]
    for model in found[1:]:
        model.weight.copy_(found[0].weight + 0.1 * model.weight)
    return found


def questions() -> Questions:
    x = torch.rand(POINTS, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    ids = np.arange(POINTS)
    return Questions(x, torch.arange(POINTS) % CLASSES, ids, ids * 0, (6,), None, 0, chunk=4)


def test_the_mean_log_odds_of_the_offline_shadows_stand_at_the_levels() -> None:
    asked, models = questions(), alike(4)
    never = np.zeros((4, POINTS), dtype=bool)
    group = Group(models, [], never, ~never)
    points = path(group, Case(asked, SearchSettings(epsilon=8.0), offline=(group, group)))
    assert points.shape == (POINTS, len(LEVELS), 6)
    for k in range(POINTS):
        for level, wanted in enumerate(LEVELS):
            chances = torch.stack([model(points[k, level]).softmax(0)[k % CLASSES] for model in models])
            assert abs(torch.log(chances / (1 - chances)).mean() - wanted) < 1e-4


@as_one("levels", [1, 2, 7, 9, 15])
def test_a_position_is_the_number_of_levels_at_which_the_label_holds(levels: int) -> None:
    edges = torch.arange(levels + 1)
    points = torch.arange(levels, dtype=torch.float64)[None, :, None].expand(len(edges), -1, -1)
    asked = Questions(
        torch.zeros(len(edges), 1),
        torch.zeros(len(edges), dtype=torch.int64),
        edges.numpy(),
        edges.numpy(),
        (1,),
        None,
        0,
    )
    calls: list[torch.Tensor] = []

    def ask(at: torch.Tensor) -> torch.Tensor:
        calls.append(at)
        return (at[..., 0] >= edges[:, None]).long()

    assert position(points, ask, asked).tolist() == edges.tolist()
    assert [tuple(at.shape) for at in calls] == [(len(edges), 1, 1)] * LABELS


def test_the_path_is_drawn_by_the_first_halfs_offline_shadows_and_judged_by_all_online_ones(scene: Scene) -> None:
    case = scene.case("ladder")
    found = scene.gather("ladder")
    assert isinstance(found, Positions)
    wanted = path(scene.offline[0], case)
    np.testing.assert_array_equal(case.trace["inputs"], wanted.numpy())
    models = [model for group in scene.online for model in group.unlearned]
    rows = [position(wanted, of_one(label_oracle(model), scene.questions), scene.questions) for model in models]
    np.testing.assert_array_equal(found.pseudo, rows)
    np.testing.assert_array_equal(found.inside, np.concatenate([group.inside for group in scene.online]))
    np.testing.assert_array_equal(found.outside, np.concatenate([group.outside for group in scene.online]))
    assert found.apart.tolist() == [False] * 4 + [True] * 4


def test_the_path_knows_no_unlearned_model_and_no_second_half(scene: Scene) -> None:
    blind = [replace(group, unlearned=[]) for group in scene.offline]
    other = replace(blind[1], original=[])
    case = replace(scene.case("ladder"), online=None, offline=(blind[0], other))
    np.testing.assert_array_equal(KINDS["ladder"]().trace(case)["inputs"], scene.case("ladder").trace["inputs"])


def test_the_score_is_the_ratio_of_normal_densities_and_the_null_the_half_that_drew_nothing() -> None:
    evidence = evidence_for("apollo_ladder", 2, 15)
    part = evidence.part("ladder")
    assert isinstance(part, Positions)
    finding = ATTACKS["apollo_ladder"]().judge(evidence)
    models = range(8)

    def ratio(value: float, k: int, but: int) -> float:
        density = []
        for side in (part.inside, part.outside):
            squares, freedom = 0.0, 0
            for point in range(15):
                own = [float(part.pseudo[i, point]) for i in models if i != but and side[i, point]]
                squares += float(np.square(np.array(own) - np.mean(own)).sum())
                freedom += len(own) - 1
            mean = np.mean([part.pseudo[i, k] for i in models if i != but and side[i, k]])
            density.append(norm.logpdf(value, mean, np.sqrt(squares / freedom)))
        return float(density[0] - density[1])

    null = [(i, k) for i in models for k in range(15) if part.outside[i, k] and i >= 4]
    np.testing.assert_allclose(finding.null, [ratio(part.pseudo[i, k], k, i) for i, k in null], rtol=0, atol=1e-9)
    places = [[i for i, point in null if point == k] for k in range(15)]
    wanted = [np.mean([ratio(part.target[k], k, i) for i in places[k]]) for k in range(15)]
    np.testing.assert_allclose(finding.score, wanted, rtol=0, atol=1e-9)
