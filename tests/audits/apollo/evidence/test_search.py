"""The batched search is the naive search: one point, one shadow, one direction at a time, in float64."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.apollo.evidence.search import boundary_margin, random_walk, search
from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Shadows, folded
from audits.errors import BadInput
from audits.models import make_model
from tests.cases.families import thinned

SHAPE = (1, 3, 4)
DIMENSIONS = 12
CLASSES = 4


def make_models(count: int, seed: int) -> list[nn.Module]:
    generator = torch.Generator().manual_seed(seed)
    models: list[nn.Module] = []
    for _ in range(count):
        model = nn.Sequential(nn.Flatten(), nn.Linear(DIMENSIONS, 16), nn.Tanh(), nn.Linear(16, CLASSES)).double()
        for parameter in model.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        models.append(model.eval())
    return models


def naive_search(shadows, x, y, start, settings, offline, value_range):
    """Return inputs, radius and confidence of one candidate and direction after the other, by the definitions."""
    m, candidates = shadows.inside.shape
    inputs = torch.empty(candidates, 2, settings.steps, DIMENSIONS, dtype=torch.float64)
    radius = torch.empty(candidates, 2, settings.steps, dtype=torch.float64)
    confidence = torch.empty(m, candidates, 2, settings.steps, dtype=torch.float64)
    for k in range(candidates):
        for way, sign in enumerate((1.0, -1.0)):
            moved = x[k].clone()
            for t in range(settings.steps):
                point = moved.clone().requires_grad_(True)
                image = point.reshape(1, *SHAPE)
                inside = [shadows.unlearned[i](image) for i in range(m) if shadows.inside[i, k]]
                outside = [shadows.original[i](image) for i in range(m) if shadows.never[i, k]]
                mean_out = torch.stack([F.cross_entropy(output, y[k : k + 1]) for output in outside]).mean()
                if offline:
                    margin = torch.stack([boundary_margin(output)[0] for output in outside]).mean()
                    loss = settings.alpha * margin - sign * settings.beta * mean_out
                else:
                    mean_in = torch.stack([F.cross_entropy(output, y[k : k + 1]) for output in inside]).mean()
                    loss = sign * (settings.alpha * mean_in - settings.beta * mean_out)
                (gradient,) = torch.autograd.grad(loss, point)
                moved = to_shell(
                    x[k], moved - settings.learning_rate * gradient, start[k, way], t, settings, value_range
                )
                inputs[k, way, t], radius[k, way, t] = moved, (moved - x[k]).norm()
                for i in range(m):
                    confidence[i, k, way, t] = 0.0
                    if shadows.inside[i, k] or shadows.never[i, k]:
                        model = shadows.unlearned[i] if shadows.inside[i, k] else shadows.original[i]
                        confidence[i, k, way, t] = model(moved.reshape(1, *SHAPE)).softmax(1)[0, y[k]].detach()
    return inputs, radius, confidence


def to_shell(origin, moved, start, t, settings, value_range):
    low, high = settings.epsilon * t, settings.epsilon * (t + 1)

    def scaled(delta):
        norm = float(delta.norm()) if settings.norm == "l2" else float(delta.abs().max())
        if norm == 0:
            return start / (1.0 if settings.norm == "l2" else float(start.abs().max())) * low
        return delta * (min(max(norm, low), high) / norm)

    moved = origin + scaled(moved - origin)
    if value_range is None:
        return moved
    moved = moved.clamp(*value_range)
    for _ in range(3):
        moved = (origin + scaled(moved - origin)).clamp(*value_range)
    return moved


def problem(seed: int, candidates: int = 7, m: int = 4):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(candidates, DIMENSIONS, generator=generator, dtype=torch.float64)
    y = torch.randint(CLASSES, (candidates,), generator=generator)
    start = torch.randn(candidates, 2, DIMENSIONS, generator=generator, dtype=torch.float64)
    start /= start.norm(dim=-1, keepdim=True)
    inside = torch.stack([torch.randperm(m, generator=generator) < m // 2 for _ in range(candidates)], dim=1)
    return x, y, start, Shadows(make_models(m, seed), make_models(m, seed + 1), inside, SHAPE)


def with_kept(shadows: Shadows, offline: bool) -> Shadows:
    """Return the shadows with one of each candidate's kept: neither inside nor outside."""
    side = shadows.never if offline else shadows.inside
    lost = torch.zeros_like(side).scatter_(0, side.int().argmax(0, keepdim=True), True)
    return replace(shadows, inside=shadows.inside & ~lost, outside=shadows.never & ~lost)


BOX = (0.0, 1.0)
FORMS = list(itertools.product((False, True), (BOX, None), ("l2", "linf"), (False, True)))
SHORT = [  # any two choices together
    (False, BOX, "l2", False),
    (False, None, "linf", True),
    (True, BOX, "linf", True),
    (True, None, "l2", True),
    (True, None, "linf", False),
]


@pytest.mark.parametrize(("offline", "value_range", "norm", "kept"), thinned(FORMS, SHORT))
def test_batched_search_equals_the_naive_search(offline, value_range, norm, kept):
    x, y, start, shadows = problem(seed=3, candidates=5)
    epsilon = 0.3 if norm == "l2" else 0.1
    settings = SearchSettings(alpha=1.0, beta=4.0, epsilon=epsilon, steps=4, learning_rate=0.1, norm=norm)
    if offline:
        shadows = Shadows(shadows.original, [], torch.zeros_like(shadows.inside), SHAPE)
    if kept:
        shadows = with_kept(shadows, offline)
    trace = search(shadows, x, y, start, settings, offline=offline, value_range=value_range, chunk=3)
    inputs, radius, confidence = naive_search(shadows, x, y, start, settings, offline, value_range)
    assert torch.allclose(trace.inputs, inputs, rtol=0, atol=1e-10)
    assert torch.allclose(trace.radius, radius, rtol=0, atol=1e-10)
    assert torch.allclose(trace.confidence, confidence, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("norm", "order"), [("l2", 2.0), ("linf", float("inf"))])
def test_every_step_lies_in_its_shell(norm, order):
    x, y, start, shadows = problem(seed=5)
    settings = SearchSettings(epsilon=0.2, steps=5, norm=norm)
    trace = search(shadows, x, y, start, settings, value_range=None)
    far = torch.linalg.vector_norm(trace.inputs - x[:, None, None], ord=order, dim=-1)
    steps = torch.arange(5, dtype=torch.float64)
    assert (far >= 0.2 * steps - 1e-9).all()
    assert (far <= 0.2 * (steps + 1) + 1e-9).all()


def test_a_shadow_that_kept_a_candidate_is_asked_nothing_about_it():
    x, y, start, shadows = problem(seed=4)
    asked: list[torch.Tensor] = []

    class Watched(nn.Module):
        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, points: torch.Tensor) -> torch.Tensor:
            asked.append(points.detach())
            return self.model(points)

    nobody, some = torch.zeros_like(shadows.inside[0]), shadows.inside[1]
    spared = replace(
        shadows,
        original=[Watched(shadows.original[0]), *shadows.original[1:]],
        unlearned=[Watched(shadows.unlearned[0]), *shadows.unlearned[1:]],
        inside=torch.stack([nobody, some, ~some, ~some]),
        outside=torch.stack([nobody, ~some, some, some]),
    )
    trace = search(spared, x, y, start, SearchSettings(steps=3))
    assert asked == []
    assert (trace.confidence[0] == 0).all() and (trace.confidence[1:] > 0).all()


def test_inputs_stay_in_the_range_of_the_data_and_the_radius_is_the_one_travelled():
    x, y, start, shadows = problem(seed=6)
    trace = search(shadows, x, y, start, SearchSettings(epsilon=1.0, steps=8), value_range=(0.0, 1.0))
    assert trace.inputs.min() >= 0 and trace.inputs.max() <= 1
    travelled = (trace.inputs - x[:, None, None]).norm(dim=-1)
    assert torch.allclose(trace.radius, travelled, rtol=0, atol=1e-12)


def test_under_and_over_pull_apart_at_the_first_step():
    x, y, start, shadows = problem(seed=8)
    settings = SearchSettings(epsilon=10.0, steps=1, learning_rate=1e-3)
    trace = search(shadows, x, y, start, settings, value_range=None)
    moved = trace.inputs[:, :, 0] - x[:, None]
    assert torch.allclose(moved[:, 0], -moved[:, 1], atol=1e-12)
    assert (moved[:, 0].norm(dim=-1) > 0).all()


def test_a_flat_loss_takes_the_given_direction():
    flat = nn.Sequential(nn.Flatten(), nn.Linear(DIMENSIONS, CLASSES)).double()
    for parameter in flat.parameters():
        nn.init.zeros_(parameter)
    x, y, start, shadows = problem(seed=9)
    shadows = Shadows([flat] * 4, [flat] * 4, shadows.inside, SHAPE)
    trace = search(shadows, x, y, start, SearchSettings(epsilon=0.1, steps=3), value_range=None)
    moved = trace.inputs[:, :, 2] - x[:, None]
    assert torch.allclose(moved, start * 0.2, atol=1e-9)


def test_random_walk_keeps_the_radii_of_the_search_where_the_range_allows():
    x, y, start, shadows = problem(seed=10)
    trace = search(shadows, x, y, start, SearchSettings(epsilon=0.05, steps=4), value_range=(0.0, 1.0))
    walk = random_walk(x, start, trace.radius, (0.0, 1.0))
    travelled = (walk - x[:, None, None]).norm(dim=-1)
    assert walk.min() >= 0 and walk.max() <= 1
    assert torch.quantile((travelled - trace.radius).abs(), 0.9) < 1e-3


def test_chunk_changes_rounding_only():
    x, y, start, shadows = problem(seed=11, candidates=9)
    settings = SearchSettings(epsilon=0.2, steps=4)
    whole = search(shadows, x, y, start, settings, chunk=9)
    parts = search(shadows, x, y, start, settings, chunk=2)
    assert torch.allclose(whole.inputs, parts.inputs, rtol=0, atol=1e-10)


def convolutional(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = make_model("resnet18", {"width": 2}).build((1, 8, 8), CLASSES, seed).double()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1.0, 0.3)
            nn.init.normal_(module.bias, 0.0, 0.3)
            module.momentum = 1.0
    model(torch.rand(32, 1, 8, 8, dtype=torch.float64))
    return model.eval()


def test_a_folded_model_answers_as_the_model_does_and_leaves_it_as_it_was():
    model = convolutional(1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    quick = folded(model)
    x = torch.rand(5, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    gradients = [torch.autograd.grad(form(x).logsumexp(1).sum(), x)[0] for form in (model, quick)]
    assert torch.allclose(quick(x), model(x), rtol=0, atol=1e-12)
    assert torch.allclose(*gradients, rtol=0, atol=1e-12)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in quick.modules())
    assert sum(isinstance(module, nn.BatchNorm2d) for module in model.modules()) == 20
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_cannot_be_folded_is_left_alone():
    def pair() -> tuple[nn.Module, nn.Module]:
        return nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)

    plain = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).eval()
    assert folded(plain) is plain
    shared = nn.Conv2d(2, 2, 1)
    left = {
        "trains": nn.Sequential(*pair()).train(),
        "no statistics": nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, track_running_stats=False)).eval(),
        "used twice": nn.Sequential(shared, nn.BatchNorm2d(2), nn.Sequential(shared, nn.BatchNorm2d(2))).eval(),
        "norm first": nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 2, 3)).eval(),
    }
    for name, model in left.items():
        norms = [[type(module) for module in form.modules()] for form in (model, folded(model))]
        assert norms[0] == norms[1], name


def test_search_leaves_no_gradient_on_the_shadows():
    x, y, start, shadows = problem(seed=12)
    search(shadows, x, y, start, SearchSettings(steps=2))
    assert all(parameter.grad is None for model in shadows.original for parameter in model.parameters())


def test_a_candidate_inside_all_shadows_or_none_is_refused():
    x, y, start, shadows = problem(seed=13)
    everywhere = Shadows(shadows.original, shadows.unlearned, torch.ones_like(shadows.inside), SHAPE)
    nowhere = Shadows(shadows.original, shadows.unlearned, torch.zeros_like(shadows.inside), SHAPE)
    with pytest.raises(BadInput, match="every shadow"):
        search(everywhere, x, y, start, SearchSettings())
    with pytest.raises(BadInput, match="no shadow"):
        search(nowhere, x, y, start, SearchSettings())


def test_a_norm_that_nobody_knows_is_refused():
    with pytest.raises(BadInput, match="norm is 'l1'; allowed: l2, linf"):
        SearchSettings(norm="l1")


@pytest.mark.parametrize("field", ["epsilon", "steps", "learning_rate"])
def test_settings_that_cannot_work_are_refused(field):
    with pytest.raises(BadInput, match=field):
        SearchSettings(**{field: 0})
