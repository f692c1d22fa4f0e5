"""Every selector, ranking and layer rule: scores for all, the same twice, nothing that was given is changed."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from audits.gradients.layers import LAYERS, Call, LayerRule, OuterRule, key_of, rule_of
from audits.gradients.layers.base import stacked
from audits.tmia.selectors import SELECTORS
from audits.uniqueness.accumulate import InBatch, Trace
from audits.uniqueness.rankings import RANKINGS
from tests.audits.tmia.test_selectors import CANDIDATES, make_case
from tests.cases.families import as_one

# ------------------------------------------------------------------------------------------------------- selectors


@as_one("name", SELECTORS)
def test_every_selector_scores_every_candidate_and_the_same_twice(name: str) -> None:
    case, untouched = make_case(), make_case()
    first, second = (SELECTORS[name]().select(case) for _ in range(2))
    assert first.candidates.shape == (CANDIDATES,) and not np.isnan(first.candidates).any()
    np.testing.assert_array_equal(first.candidates, second.candidates)
    assert first.reference is None or not np.isnan(first.reference).any()
    assert isinstance(case.features, torch.Tensor) and isinstance(untouched.features, torch.Tensor)
    assert torch.equal(case.features, untouched.features)
    np.testing.assert_array_equal(case.loss, untouched.loss)


# -------------------------------------------------------------------------------------------------------- rankings


def made_up_trace(points: int = 7, checkpoints: int = 3) -> Trace:
    rng = np.random.default_rng(0)
    shape = (checkpoints, points)
    return Trace(
        steps=np.arange(checkpoints) * 4,
        loss=rng.exponential(size=shape),
        squared_norm=rng.exponential(size=shape),
        gnq={mode: rng.exponential(size=shape) for mode in ("ridge", "pinv", "diagonal")},
        doubts=("",) * checkpoints,
        in_batch=InBatch(
            log={"ridge": rng.exponential(size=points)}, total={}, steps=np.ones(points, dtype=np.int64), doubts=0
        ),
        twin_loss=rng.exponential(size=points),
        held_out_loss=rng.exponential(size=points),
    )


@as_one("name", RANKINGS)
def test_a_ranking_scores_every_point_and_reads_a_seed_only_if_it_is_random(name: str) -> None:
    trace, untouched = made_up_trace(), made_up_trace()
    first, again, other = (RANKINGS[name](trace, seed) for seed in (1, 1, 2))
    assert first.shape == (7,) and first.dtype == np.float64 and np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) == (name != "random")
    np.testing.assert_array_equal(trace.loss, untouched.loss)
    np.testing.assert_array_equal(trace.gnq["ridge"], untouched.gnq["ridge"])


# ----------------------------------------------------------------------------------------------------- layer rules


def images(*size: int) -> torch.Tensor:
    return torch.rand(5, 4, *size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


MODULES: list[tuple[nn.Module, torch.Tensor]] = [
    (nn.BatchNorm1d(4).eval(), images(6)),
    (nn.BatchNorm2d(4).eval(), images(6, 5)),
    (nn.BatchNorm3d(4).eval(), images(3, 4, 5)),
    (nn.Conv1d(4, 6, 3, groups=2), images(6)),
    (nn.Conv2d(4, 6, 3, stride=2, padding=1), images(6, 5)),
    (nn.Conv3d(4, 2, 2), images(3, 4, 5)),
    (nn.Embedding(9, 3), torch.arange(20).reshape(5, 4) % 9),
    (nn.GroupNorm(2, 4), images(6, 5)),
    (nn.LayerNorm(6), images(5, 6)),
    (nn.Linear(6, 3), images(6)),
]


def test_every_layer_with_a_rule_is_here() -> None:
    assert sorted(key_of(type(module)) for module, _ in MODULES) == list(LAYERS)


@as_one("module, x", MODULES)
def test_a_rules_rows_are_the_gradients_of_single_points(module: nn.Module, x: torch.Tensor) -> None:
    module = module.double()
    rule = rule_of(module)
    assert isinstance(rule, LayerRule)
    y = module(x)
    grad = torch.rand(y.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weight = torch.linspace(-1, 1, len(x), dtype=torch.float64)
    for name, parameter in module.named_parameters():
        wanted = torch.stack(
            [torch.autograd.grad((module(x[i : i + 1]) * grad[i]).sum(), parameter)[0].flatten() for i in range(len(x))]
        )
        call = Call(x, grad)
        assert torch.allclose(rule.rows(module, call, name), wanted, rtol=0, atol=1e-10), name
        assert torch.allclose(rule.total(module, call, name, weight), weight @ wanted, rtol=0, atol=1e-10), name


OUTER = [(module, x) for module, x in MODULES if isinstance(rule_of(module), OuterRule)]


@as_one("module, x", OUTER)
def test_the_ghost_kernel_of_a_rule_is_the_inner_product_of_its_rows(module: nn.Module, x: torch.Tensor) -> None:
    module = module.double()
    rule = rule_of(module)
    assert isinstance(rule, OuterRule)
    y = module(x)
    grad = torch.rand(y.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    call = Call(x, grad)
    a, b = rule.factors(module, call)
    n = len(x)
    inner = (rule.inner(a, a) * (stacked(b) @ stacked(b).transpose(1, 2))).sum(0)
    found = inner.reshape(n, -1, n, inner.shape[0] // n).sum((1, 3))
    rows = rule.rows(module, call, "weight")
    assert torch.allclose(found, rows @ rows.T, rtol=0, atol=1e-9)


def test_a_subclass_of_a_layer_has_no_rule() -> None:
    class Own(nn.Linear):
        pass

    assert rule_of(Own(2, 2)) is None
