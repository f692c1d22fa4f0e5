"""Attacks on the models of a pool: what learned ones learn, from whom, and the features that weights give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gnq.answers import PoolAnswers, compared
from audits.gnq.attacks import POOL_ATTACKS, learned
from audits.gnq.removal import group_aucs
from audits.gradients.white_box import white_box_features
from tests.audits.gnq.random_pools import LABELS, POINTS, drawn, pool
from tests.cases.families import thinned
from tests.cases.layer_models import case


def found(targets: PoolAnswers, naive: PoolAnswers | None = None, adaptive: PoolAnswers | None = None, **more):
    """Return what learned attacks find: (group, attack, shadows) to the row."""
    rows = group_aucs(targets, LABELS, naive, adaptive, attacks=["shadow_posterior", "white_box"], **more)
    return {(row.group, row.attack, row.shadows): row for row in rows}


@pytest.mark.parametrize("name", thinned(POOL_ATTACKS, set(POOL_ATTACKS) - {"shadow_posterior"}))
def test_a_targets_scores_do_not_depend_on_its_place(name: str) -> None:
    targets, shadows = pool(1, 1, gap=1.0), pool(4, 2, gap=1.0)
    first, turned = (
        POOL_ATTACKS[name]().scores(asked, shadows, LABELS, "contributors", 3)
        for asked in (targets, PoolAnswers(*(part[[1, 0]] for part in parts_of(targets))))
    )
    np.testing.assert_array_equal(first, turned[::-1])


def parts_of(answers: PoolAnswers) -> tuple[np.ndarray, ...]:
    assert answers.features is not None
    return answers.logits, answers.half, answers.kept, answers.features


def test_posteriors_are_what_shadow_posterior_reads() -> None:
    answers = pool(1, 5)
    rows = POOL_ATTACKS["shadow_posterior"]().features(answers, LABELS)
    for model, point in [(0, 0), (1, 7), (0, 199)]:
        odds = np.exp(answers.logits[model, point])
        p = odds / odds.sum()
        own = p[LABELS[point]]
        slow = [*np.log(sorted(p)[::-1][:3]), np.log(own / (1 - own)), p.argmax() == LABELS[point]]
        np.testing.assert_allclose(rows[model, point], slow, rtol=1e-9)
    two = replace(answers, logits=answers.logits[..., :2])
    assert POOL_ATTACKS["shadow_posterior"]().features(two, LABELS % 2).shape == (2, POINTS, 4)


@pytest.mark.parametrize("group", ["contributors", "kept", "removed"])
def test_rmia_compares_every_point_with_every_point_of_the_pool(group: str) -> None:
    targets, shadows = pool(1, 1, 0.3, gap=1.0), pool(3, 2, 0.3, gap=1.0)
    inside, outside = shadows.sides(group)
    p, own = (true_class(answers.logits) for answers in (shadows, targets))
    expected = []
    for x in range(POINTS):
        means = [p[side[:, x], x].mean() for side in (inside, outside) if side[:, x].any()]
        expected.append(np.mean(means) if means else p[:, x].mean())
    assert (group != "contributors") == (~(inside | outside).any(0)).any()  # the group has some points of no shadow
    found = POOL_ATTACKS["rmia"]().scores(targets, shadows, LABELS, group, 0)
    for twin, x in [(0, 0), (0, 199), (1, 7)]:
        ratios = own[twin, x] / expected[x] / (own[twin] / np.array(expected))
        np.testing.assert_allclose(found[twin, x], (ratios / (ratios + 1)).mean(), rtol=1e-9)


def true_class(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits)
    return (odds / odds.sum(-1, keepdims=True))[:, np.arange(POINTS), LABELS]


def test_rmia_finds_what_leaks_and_nothing_where_nothing_does() -> None:
    for gap, low, high in ((2.0, 0.8, 1.0), (0.0, 0.4, 0.6)):
        (row,) = group_aucs(pool(1, 1, gap=gap), LABELS, pool(8, 2, gap=gap), None, ["contributors"], ["rmia"])
        assert (row.auc > low).all() and (row.auc < high).all()


def test_learned_attacks_find_what_leaks_and_nothing_where_nothing_does() -> None:
    for row in found(pool(1, 1, gap=2.0), pool(8, 2, gap=2.0)).values():
        assert row.group in ("contributors", "kept") and row.shadows == "naive"
        assert (row.auc > 0.8).all() if row.attack == "shadow_posterior" else (abs(row.auc - 0.5) < 0.1).all()
    inner = found(pool(1, 1, inner=3.0), pool(8, 2, inner=3.0))
    assert (inner["contributors", "white_box", "naive"].auc > 0.8).all()
    assert (abs(inner["contributors", "shadow_posterior", "naive"].auc - 0.5) < 0.1).all()


@pytest.mark.long
def test_adaptive_shadows_teach_the_group_that_is_judged() -> None:
    targets, naive, adaptive = pool(1, 1, 0.4, gap=2.0), pool(8, 2, gap=2.0), pool(8, 3, 0.4, gap=2.0)
    rows = found(targets, naive, adaptive)
    learned = [(group, attack) for group in ("contributors", "kept") for attack in ("shadow_posterior", "white_box")]
    assert set(rows) == {(*each, kind) for each in learned for kind in ("naive", "adaptive")}
    ordinary = [rows[group, "shadow_posterior", "naive"].scores for group in ("contributors", "kept")]
    np.testing.assert_array_equal(*ordinary)
    taught = [rows[group, "shadow_posterior", "adaptive"].scores for group in ("contributors", "kept")]
    assert (taught[0] != taught[1]).any()
    # Removed contributors leave no trace: what is learned from them too, is less than from those kept.
    assert taught[0].std() < 0.8 * taught[1].std()


def test_rows_are_those_of_the_group_and_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    def spy(rows: np.ndarray, members: np.ndarray, asked: np.ndarray, seed: int) -> np.ndarray:
        seen.append((rows, members))
        return np.zeros(asked.shape[:-1])

    monkeypatch.setattr(learned, "log_odds", spy)
    targets, shadows = pool(1, 1), pool(3, 2, 0.3)
    attack = POOL_ATTACKS["white_box"]()
    place = np.arange(6 * POINTS).reshape(6, POINTS, 1)
    placed = replace(shadows, features=place), replace(targets, features=np.zeros((2, POINTS, 1)))
    for limit in (10_000, 100):
        monkeypatch.setattr(learned, "ROWS", limit)
        attack.scores(placed[1], placed[0], LABELS, "kept", 0)
        rows, members = seen[-1]
        inside, outside = (side.ravel() for side in compared(shadows.half, shadows.kept, "kept"))
        assert len(rows) == len(set(rows[:, 0])) == min(limit, (inside | outside).sum())
        np.testing.assert_array_equal(members, inside[rows[:, 0]])
        np.testing.assert_array_equal(~members, outside[rows[:, 0]])
    attack.scores(placed[1], placed[0], LABELS, "kept", 1)
    assert set(seen[-1][0][:, 0]) != set(seen[-2][0][:, 0])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: POOL_ATTACKS["lira"]().scores(pool(1, 0), None, LABELS, "kept", 0), "attack lira learns from shadows"),
        (lambda: found(replace(pool(1, 0), features=None), pool(2, 1)), "make them with white_box_features"),
        (lambda: found(pool(1, 0), replace(pool(2, 1), features=None)), "make them with white_box_features"),
        (lambda: found(pool(1, 0), replace(pool(2, 1), features=drawn(4, POINTS, 2))), r"\(200, 2\) but is asked"),
        (
            lambda: POOL_ATTACKS["white_box"]().scores(pool(1, 0), pool(2, 1), LABELS, "removed", 0),
            "group 'removed', but the shadows have none on one side",
        ),
    ],
)
def test_what_does_not_fit_is_refused(ask, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)


def slow_features(model: nn.Module, data: TensorSet) -> np.ndarray:
    """Return the features one point after another, by autograd in float64."""
    model = model.double()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    seen: list[torch.Tensor] = []
    linear.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    rows = []
    for x, y in zip(data.x.double(), data.y, strict=True):
        logits = model(x[None])
        loss = F.cross_entropy(logits, y[None])
        norms = [gradient.norm() for gradient in torch.autograd.grad(loss, parameters)]
        rows.append(torch.cat([loss[None], torch.stack(norms), seen[-1][0], logits[0]]).detach())
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("name", ["mlp", "cnn", "conv2d_groups"])
@pytest.mark.parametrize(("chunk", "memory"), [(2, 2**30), (32, 2000)])
def test_white_box_features_are_those_of_autograd(name: str, chunk: int, memory: int) -> None:
    model, x, y = case(name)
    found = white_box_features(model, TensorSet(x, y), chunk=chunk, memory=memory)
    slow = slow_features(model, TensorSet(x, y))
    assert found.dtype == np.float32
    assert found.shape == slow.shape
    np.testing.assert_allclose(found, slow, rtol=1e-5, atol=1e-6)


def test_frozen_parameters_have_no_norm_and_the_model_is_left_as_it_was() -> None:
    model, x, y = case("cnn")
    whole = white_box_features(model, TensorSet(x, y))
    first = next(model.parameters())
    first.requires_grad_(False)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    rest = white_box_features(model, TensorSet(x, y))
    np.testing.assert_allclose(rest, np.delete(whole, 1, axis=1), rtol=1e-6)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert not any(module._forward_pre_hooks for module in model.modules())


class Mean(nn.Module):
    """The mean over positions, so that the last linear layer sees a sequence."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


def test_models_without_features_are_refused() -> None:
    model, x, y = case("mlp")
    with pytest.raises(BadInput, match=r"use made_auditable\(model\)"):
        white_box_features(model.train(), TensorSet(x, y))
    with pytest.raises(BadInput, match=r"the last one \(0\) is not linear, so it is no head"):
        white_box_features(nn.Sequential(nn.Conv1d(3, 4, 3), nn.Flatten()), TensorSet(torch.ones(2, 3, 3), y[:2]))
    pooled, x, y = case("sequence")
    with pytest.raises(BadInput, match="not run once with one vector a point"):
        white_box_features(nn.Sequential(pooled.body, Mean()), TensorSet(x, y))
