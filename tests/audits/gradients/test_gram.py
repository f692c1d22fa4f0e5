"""The Gram matrix of gradients equals that of one backward pass a point, for every layer and however it is cut up."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from audits.gradients import capture, gram, products
from audits.gradients.engine import pieces
from audits.gradients.residuals import cross_entropy
from audits.gradients.survey import surveyed
from audits.uniqueness.diagonal import diagonal_uniqueness
from tests.cases.families import thinned
from tests.cases.layer_models import CASES, CLASSES, READ_ONLY, case, drawn, labels, slow_gradients

EXACT = 1e-10
WHOLE = (
    "attention",
    "attention_other_axis",
    "recurrent",
    "conv_transpose",
    "two_names",
    "tied",
    "in_place",
    "sorted",
    "unbatchable",
    "rows_conv1d",
    "rows_linear",
    "rows_layer_norm",
    "rows_tokens",
)
WHOLE += ("encoder", "swin_t")

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")  # a case means it


def error(found: torch.Tensor, truth: torch.Tensor) -> float:
    """Return the largest difference, relative to the largest number."""
    assert found.shape == truth.shape
    assert found.dtype == torch.float64
    return float((found - truth).abs().max() / truth.abs().max())


# What is long has its layers in shorter cases: a BERT in ``test_bert.py``, convolutions with strides and groups in one
# dimension, an MLP's as linear and norm, what is read through the whole model as attention.
LONG = {"bert", "resnet18", "resnet18_group", "swin_t", "vgg16", "mlp", "sequence", "encoder", "recurrent"}
LONG |= {"conv2d_strides", "conv2d_groups", "conv2d_ghost_groups"}


@pytest.mark.parametrize("name", thinned((*CASES, *READ_ONLY), {*CASES, *READ_ONLY} - LONG))
def test_gram_norms_and_gradients_are_those_of_one_backward_pass_a_point(name: str) -> None:
    model, x, y = case(name)
    truth, before = slow_gradients(model, x, y), x.clone()
    K = gram.gram(model, x, y)
    assert error(K, truth @ truth.T) < EXACT
    assert torch.equal(K, K.T)
    assert error(gram.squared_norms(model, x, y), truth.square().sum(1)) < EXACT
    assert error(gram.gradients(model, x, y), truth) < EXACT
    assert torch.equal(x, before)


@pytest.mark.long
def test_gram_is_that_of_vmap_of_grad() -> None:
    model, x, y = case("resnet18")
    twin = copy.deepcopy(model).double()

    def loss(weights: dict[str, torch.Tensor], point: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(functional_call(twin, weights, (point[None],)), label[None])

    weights = {key: value.detach() for key, value in twin.named_parameters()}
    rows = vmap(grad(loss), (None, 0, 0))(weights, x.double(), y)
    G = torch.cat([row.flatten(1) for row in rows.values()], 1)
    assert error(gram.gram(model, x, y), G @ G.T) < EXACT


CUTS: list[dict[str, Any]] = [
    {"chunk": 1},
    {"chunk": 2, "parameter_chunk": 100},
    {"chunk": 3, "memory": 20_000},
    {"chunk": 4, "parameter_chunk": 10**6, "memory": 9000},
]


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        pytest.param(name, cut, marks=() if number == place % 4 else pytest.mark.long)
        for place, name in enumerate(("conv2d_ghost", "conv2d_groups", "embedding", "shared", "tied", "cnn"))
        for number, cut in enumerate(CUTS)
    ]
    + [pytest.param("encoder", cut, marks=pytest.mark.long) for cut in CUTS]
    + thinned(
        [(name, {"memory": 1}) for name in ("linear", "conv2d_ghost", "embedding")], [("conv2d_ghost", {"memory": 1})]
    ),
    ids=str,
)
def test_chunks_and_memory_change_nothing(name: str, cut: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, y = case(name)
    truth = slow_gradients(model, x, y)
    monkeypatch.setattr(products, "TILE", 40)
    monkeypatch.setattr(products, "SIDE", 2)
    assert error(gram.gram(model, x, y, **cut), truth @ truth.T) < EXACT
    rest = {setting: value for setting, value in cut.items() if setting != "parameter_chunk"}
    assert error(gram.squared_norms(model, x, y, **rest), truth.square().sum(1)) < EXACT


def test_less_memory_means_more_passes_and_less_held(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, y = case("cnn")
    most = []

    def watched(*arguments: Any) -> None:
        left, right = arguments[2], arguments[3]
        blocks = [left] if left is right else [left, right]
        most.append(sum(one.numel() * 8 for block in blocks for each in block for one in each))
        add(*arguments)

    add = gram.add_block
    monkeypatch.setattr(gram, "add_block", watched)
    gram.gram(model, x, y)
    whole = list(most)
    most.clear()
    gram.gram(model, x, y, memory=6000)
    assert len(whole) == 1 < len(most)
    assert max(most) <= 6000 < whole[0]


def test_the_order_of_the_points_changes_nothing() -> None:
    model, x, y = case("batch_norm")
    order = torch.tensor([3, 0, 5, 4, 2, 1])
    K, again = gram.gram(model, x, y), gram.gram(model, x[order], y[order])
    assert error(again, K[order][:, order]) < EXACT


# Others that are read by hooks would be right through the whole model too, and slower.
READ = ("linear", "two_axes", "conv2d_ghost", "embedding", "layer_norm", "batch_norm", "shared", "cnn", "mlp")


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        *thinned(
            ((name, []) for name in CASES if name not in WHOLE),
            [(name, []) for name in READ],
        ),
        ("two_names", ["scale"]),
        ("tied", ["words.weight"]),
        ("in_place", ["token"]),
        ("sorted", ["body.weight", "body.bias"]),
        ("unbatchable", ["scale"]),
        ("sparse_embedding", []),
        ("weight_norm", ["0.bias", "0.weight_g", "0.weight_v"]),
        ("pruned", ["0.bias", "0.weight_orig", "2.weight", "2.bias_orig"]),
    ],
)
def test_layers_are_read_by_hooks_where_that_is_right_and_only_there(name: str, whole: list[str]) -> None:
    model, x, y = case(name)
    with surveyed(model, x, y) as found:
        assert list(found.whole) == whole
        assert found.batched == (bool(whole) and name != "unbatchable")


def test_a_transformers_attention_and_common_places_are_read_through_the_whole_model() -> None:
    model, x, y = case("encoder")
    with surveyed(model, x, y) as found:
        assert {name.split(".")[-2] for name in found.whole} == {"places", "self_attn", "out_proj"}
        assert found.batched


@pytest.mark.parametrize(("positions", "ghost"), [(1, True), (4, False), (2, True), (3, False)])
def test_a_layer_is_a_ghost_where_that_is_cheaper(positions: int, ghost: bool) -> None:
    # 10 inputs, 12 outputs: 22 T² < 120 up to T = 2; for norms 22 T < 120 up to T = 5
    model = nn.Sequential(nn.Linear(10, 12), nn.Flatten(), nn.Linear(12 * positions, CLASSES))
    with surveyed(model, drawn(3, positions, 10), labels(3)) as found:
        first = {purpose: pieces(found, purpose, 10**6)[0].ghost for purpose in ("pairs", "norms", "rows")}
    assert first == {"pairs": ghost, "norms": True, "rows": False}


def test_only_parameters_with_requires_grad_count() -> None:
    model, x, y = case("cnn")
    for parameter in list(model.parameters())[:3]:
        parameter.requires_grad_(False)
    truth = slow_gradients(model, x, y)
    assert truth.shape[1] < sum(parameter.numel() for parameter in model.parameters())
    assert error(gram.gram(model, x, y), truth @ truth.T) < EXACT
    assert error(gram.gradients(model, x, y), truth) < EXACT


def test_the_model_is_left_as_it_was() -> None:
    model, x, y = case("batch_norm")
    model.get_parameter("0.0.weight").requires_grad_(False)
    model(x).sum().backward()
    before = copy.deepcopy(model)
    grads = [None if each.grad is None else each.grad.clone() for each in model.parameters()]
    fast, random = torch.backends.mha.get_fastpath_enabled(), torch.get_rng_state()
    gram.gram(model, x, y)
    with pytest.raises(ZeroDivisionError):
        gram.gram(model, x, y, loss=lambda logits, labels: 1 / 0)
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert torch.equal(torch.get_rng_state(), random)
    assert not any(module._forward_hooks for module in model.modules())
    assert [each.training for each in model.modules()] == [each.training for each in before.modules()]
    assert [each.requires_grad for each in model.parameters()] == [each.requires_grad for each in before.parameters()]
    assert all(torch.equal(value, before.state_dict()[name]) for name, value in model.state_dict().items())
    for each, old in zip(model.parameters(), grads, strict=True):
        assert (each.grad is None and old is None) or torch.equal(each.grad, old)


def test_hooks_are_removed_when_the_model_fails() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(5, 2)).requires_grad_(False)
    with pytest.raises(RuntimeError):
        capture.calls_of(model, ["0", "1"], drawn(2, 3), lambda logits: logits)
    assert not any(module._forward_hooks for module in model.modules())


def test_float32_passes_are_summed_in_float64() -> None:
    model, x, y = case("cnn")
    truth = slow_gradients(model, x, y)
    K = gram.gram(model, x, y, dtype=torch.float32)
    G = gram.gradients(model, x, y, dtype=torch.float32).double()
    assert error(K, truth @ truth.T) < 1e-5
    assert error(gram.gram(model, x, y, dtype=torch.float32, chunk=2), K) < 1e-5
    assert error(G, truth) < 1e-5
    left = drawn(1, 4000).abs() + 100
    tile = torch.zeros(1, 1, dtype=torch.float64)
    products.number_tile(left, left, tile)
    assert error(tile, left.double() @ left.double().T) < 1e-14


def test_a_fitted_point_keeps_its_digits() -> None:
    logits = torch.tensor([[40.0, 0.0, -1.0]])
    others = torch.tensor([0.0, -1.0], dtype=torch.float64).sub(40).exp()
    found = cross_entropy(logits, torch.tensor([0]))
    assert torch.allclose(found[0, 1:], others, rtol=1e-12, atol=0)
    assert abs(found[0, 0].item() / -others.sum().item() - 1) < 1e-12


def test_a_loss_of_ones_own_is_differentiated() -> None:
    model, x, y = case("linear")
    own = gram.gram(model, x, y, loss=lambda logits, labels: F.cross_entropy(logits, labels, reduction="none"))
    assert error(own, gram.gram(model, x, y)) < EXACT
    half = gram.gram(model, x, y, loss=lambda logits, labels: logits.square().sum(1) / 2)
    assert error(half, gram.gram(model, x, y)) > 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loss_of_ones_own_sees_labels_that_are_no_integers(dtype: torch.dtype) -> None:
    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (logits[:, 0] - targets) ** 2

    model, x, targets = nn.Linear(6, 1).double(), drawn(5, 6), torch.tensor([0.9, 0.1, 0.7, 0.4, 0.2], dtype=dtype)
    rows = []
    for point, target in zip(x.double(), targets, strict=True):
        grads = torch.autograd.grad(loss(model(point[None]), target[None]).sum(), list(model.parameters()))
        rows.append(torch.cat([gradient.flatten() for gradient in grads]))
    truth = torch.stack(rows)
    assert error(gram.gram(model, x, targets, loss=loss), truth @ truth.T) < EXACT
    assert error(gram.squared_norms(model, x, targets, loss=loss), truth.square().sum(1)) < EXACT


def test_images_are_read_as_in_training() -> None:
    model, _, y = case("mlp")
    x = torch.randint(256, (5, 3, 5, 5), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    assert error(gram.gram(model, x, y), gram.gram(model, x.float() / 255, y)) < EXACT


@pytest.mark.parametrize(
    ("name", "relative"),
    thinned(
        ((name, relative) for name in ("cnn", "tied", "encoder", "embedding_ghost") for relative in (True, False)),
        [("tied", True), ("embedding_ghost", False)],
    ),
)
def test_diagonal_uniqueness_is_its_definition(name: str, relative: bool) -> None:
    model, x, y = case(name)
    squares = slow_gradients(model, x, y).square()
    shift = 0.01 * (float(squares.mean()) if relative else 1.0)
    truth = torch.stack([(squares[j] / (squares.sum(0) - squares[j] + shift)).sum() for j in range(len(x))])
    for cut in ({}, {"chunk": 2, "parameter_chunk": squares.shape[1] // 4}):
        found = diagonal_uniqueness(model, x, y, ridge=0.01, relative=relative, **cut)
        assert error(found, truth) < EXACT


def test_diagonal_uniqueness_does_not_cancel_where_one_point_owns_a_parameter() -> None:
    model = nn.Linear(3, 2, bias=False)  # by this loss, the gradient of the first output's weights is x itself
    x = torch.tensor([[1e4, 0.0, 1.0], [1e-3, 1e-3, 1.0], [0.0, 1e-3, 1.0]])
    squares = x.double().square()
    others = torch.stack([torch.cat([squares[:j], squares[j + 1 :]]).sum(0) for j in range(3)])
    truth = (squares / (others + 1e-9)).sum(1)
    for chunk in (1, 2, 3):
        found = diagonal_uniqueness(
            model, x, labels(3), ridge=1e-9, relative=False, chunk=chunk, loss=lambda logits, y: logits[:, 0]
        )
        assert float(((found - truth).abs() / truth).max()) < 1e-9


def test_zero_gradients_have_no_uniqueness() -> None:
    model, x, y = case("linear")
    found = diagonal_uniqueness(model, x, y, loss=lambda logits, labels: 0 * logits.sum(1))
    assert torch.equal(found, torch.zeros(8, dtype=torch.float64))


@pytest.mark.long  # the catalogue's is in ``test_bert.py``
def test_a_two_layer_bert_is_exact() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not a dependency")
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        num_labels=CLASSES,
    )

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = transformers.BertForSequenceClassification(config)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.bert(x).logits

    model, x = Logits().eval(), torch.arange(30).reshape(5, 6) % 20
    truth = slow_gradients(model, x, labels(5))
    assert error(gram.gram(model, x, labels(5)), truth @ truth.T) < EXACT
