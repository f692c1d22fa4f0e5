"""Models and points without gradients of their own are refused in one line that says what to do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Subset, TensorDataset
from torchvision.ops import StochasticDepth

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.gram import gradients, gram, squared_norms
from audits.gradients.validate import made_auditable
from audits.uniqueness.diagonal import diagonal_uniqueness
from audits.uniqueness.scores import gradient_uniqueness
from tests.cases.families import as_one, thinned
from tests.cases.layer_models import CLASSES, FromTheMean, case, drawn, labels, slow_gradients


class Noisy(FromTheMean):
    """Adds noise while it trains, without a layer of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x + torch.rand_like(x) if self.training else x)


class Routed(nn.Module):
    """Two linear branches, each called with the points that the sign of their first number sends to it."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, CLASSES), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = x.new_zeros(len(x), CLASSES)
        for branch, here in ((self.left, x[:, 0] > 0), (self.right, x[:, 0] <= 0)):
            rows = here.nonzero()[:, 0]
            if len(rows):
                found = found.index_put((rows,), branch(x[rows]))
        return found


class Cropped(nn.Module):
    """Cuts texts to the longest one among them, so that a layer sees as many positions as the pass has."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(90, 5, padding_idx=0), nn.Linear(5, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[:, : int((x > 0).sum(1).max())]
        return self.head(self.words(x).sum(1))


class Complex(nn.Module):
    """Weighs its inputs with complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Parameter(torch.randn(6, 5, dtype=torch.complex64)), nn.Linear(5, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((x.to(self.body.dtype) @ self.body).abs())


class Detached(nn.Module):
    """Answers so that no gradient goes back to its weights."""

    def __init__(self, context: Callable[[], Any]) -> None:
        super().__init__()
        self.head, self.context = nn.Linear(6, CLASSES), context

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.context():
            return self.head(x)


class Half(nn.Module):
    """Two layers, the first of which ``how`` keeps autograd from, in one of its two calls if ``twice``."""

    def __init__(self, how: Callable[..., torch.Tensor], twice: bool = False, frozen: bool = False) -> None:
        super().__init__()
        self.body, self.head, self.unused = nn.Linear(6, 6), nn.Linear(6, CLASSES), nn.Linear(6, 2)
        self.how, self.twice = how, twice
        self.body.requires_grad_(not frozen)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.how(self.body, x)
        return self.head((found + self.body(x) if self.twice else found).relu())


@torch.no_grad()
def without_grad(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return body(x)


@torch.inference_mode()
def inferred(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return body(x)


HALVES: dict[str, Callable[..., torch.Tensor]] = {
    "no_grad": without_grad,
    "inference": lambda body, x: inferred(body, x).clone(),
    "detached": lambda body, x: body(x).detach(),
    "data": lambda body, x: body(x).relu().data,
    "weights": lambda body, x: F.linear(x, body.weight.detach(), body.bias.data),
    "one weight": lambda body, x: F.linear(x, body.weight.detach(), body.bias),
    "numpy": lambda body, x: torch.from_numpy(body(x).detach().numpy()),
}


class Recomputed(nn.Module):
    """Computes a layer again while it goes back."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.body, self.head, self.reentrant = nn.Linear(6, 6), nn.Linear(6, CLASSES), reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.head, self.body(x).relu(), use_reentrant=self.reentrant)


class Cast(nn.Module):
    """Computes a layer under autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            x = self.body(x)
        return self.head(x.float())


def scripted() -> nn.Module:
    """Return a model of which one part is a program of torch.jit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather have torch.export
        part = torch.jit.trace(nn.Sequential(nn.Linear(6, 6), nn.ReLU()), drawn(4, 6))
    return nn.Sequential(part, nn.Linear(6, CLASSES))


def broken() -> nn.Module:
    model = nn.Linear(6, CLASSES)
    with torch.no_grad():
        model.bias[1] = torch.nan
    return model


def fresh() -> nn.Module:
    """Return a pruned model as training leaves it: with a weight that is no leaf of autograd's graph."""
    model = nn.Sequential(nn.Linear(6, CLASSES))
    prune.l1_unstructured(model[0], "weight", amount=0.3)
    return model


MODELS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "batch norm": (lambda: nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 4)), "layer 0 is a BatchNorm1d in train mode"),
    "no statistics": (
        lambda: nn.Sequential(nn.BatchNorm1d(6, track_running_stats=False), nn.Linear(6, 4)).eval(),
        "without running statistics.*GroupNorm",
    ),
    "dropout": (lambda: nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5)), "layer 1 is a Dropout that drops at random"),
    "attention": (
        lambda: nn.Sequential(nn.Linear(6, 4), nn.MultiheadAttention(4, 1, dropout=0.1)),
        "layer 1 is a MultiheadAttention that drops",
    ),
    "frequencies": (
        lambda: nn.Sequential(nn.Embedding(6, 4, scale_grad_by_freq=True), nn.Flatten(), nn.Linear(24, 4)).eval(),
        "layer 0 is an Embedding with scale_grad_by_freq.*set it to False",
    ),
    "norms": (
        lambda: nn.Sequential(nn.Embedding(6, 4, max_norm=1.0), nn.Flatten(), nn.Linear(24, 4)).eval(),
        "layer 0 is an Embedding with max_norm, which changes its own weights.*set it to None",
    ),
    "bag": (
        lambda: nn.Sequential(nn.EmbeddingBag(6, 4, scale_grad_by_freq=True), nn.Linear(4, 4)).eval(),
        "layer 0 is an EmbeddingBag with scale_grad_by_freq",
    ),
    "depth": (lambda: nn.Sequential(nn.Linear(6, 4), StochasticDepth(0.2, "row")), "layer 1 is a StochasticDepth"),
    "functional": (Noisy, r"from call to call.*made_auditable"),
    "centred": (lambda: FromTheMean().eval(), "differently beside another one"),
    "frozen": (
        lambda: nn.Linear(6, 4).requires_grad_(False),
        r"no parameter has requires_grad.*made_auditable\(model\)",
    ),
    "empty": (nn.Flatten, "it has no parameters"),
    "nan": (broken, "parameter bias is not finite"),
    "not to be copied": (fresh, r"cannot be copied \(.*graph leaves.*; call it once under torch.no_grad"),
    "not alone": (lambda: nn.Sequential(nn.Linear(6, 4), nn.GroupNorm(4, 4)), "cannot answer one point alone"),
    "complex": (Complex, r"parameter body is torch.complex64; allowed: real .*torch.view_as_real"),
    "no_grad": (lambda: Detached(torch.no_grad), r"logits do not lead back to .*torch.no_grad.*take that out"),
    "inference": (lambda: Detached(torch.inference_mode), "logits do not lead back to"),
    "recomputed": (lambda: Recomputed(False), r"torch.utils.checkpoint.*turn checkpointing off"),
    "recomputed by reentry": (lambda: Recomputed(True), r"torch.utils.checkpoint.*turn checkpointing off"),
    "jit": (scripted, r"layer 0 is a program of torch.jit.*before torch.jit"),
    "parallel": (lambda: nn.DataParallel(nn.Linear(6, 4)), r"it is a DataParallel.*give its .module"),
    "lazy": (
        lambda: nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 4)),
        r"0.weight has no shape yet.*call the model once",
    ),
    "no logits": (lambda: nn.Sequential(nn.Linear(6, 4), nn.Unflatten(1, (2, 2))), "returns shape"),
}


ASKED = (gram, squared_norms, gradients, diagonal_uniqueness)
SHORT = [(name, ask) for name in MODELS for ask in ASKED if ask is gram or name in ("batch norm", "from the mean")]


@pytest.mark.parametrize(("name", "ask"), thinned(((name, ask) for name in MODELS for ask in ASKED), SHORT))
def test_models_without_a_gradient_of_each_point_are_refused(name: str, ask: Callable[..., torch.Tensor]) -> None:
    build, says = MODELS[name]
    with pytest.raises(BadInput, match=says) as caught:
        ask(build(), drawn(4, 6), labels(4))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("how", "twice"),
    thinned(
        ((how, twice) for how in HALVES for twice in (False, True)),
        [("data", False), ("no_grad", True)],
    ),
)
def test_a_model_that_autograd_reaches_in_part_is_refused_unless_that_part_is_frozen(how: str, twice: bool) -> None:
    with pytest.raises(BadInput, match=r"not the derivatives .*\(body.*\).*requires_grad_\(False\)") as caught:
        gram(Half(HALVES[how], twice), drawn(4, 6), labels(4))
    assert "unused" not in str(caught.value) and "head" not in str(caught.value)
    assert gram(Half(HALVES[how], twice, frozen=True), drawn(4, 6), labels(4)).diagonal().gt(0).all()


def test_a_layer_that_the_answer_does_not_depend_on_and_a_hard_gate_are_allowed() -> None:
    def gated(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x * (body(x) > 0)

    model = Half(gated)
    K = gram(model, drawn(4, 6), labels(4))
    G = slow_gradients(model.double(), drawn(4, 6).double(), labels(4))
    assert torch.allclose(K, G @ G.T)


def signed(*signs: int) -> torch.Tensor:
    """Return points (N, 6) whose first numbers have these signs."""
    x = drawn(len(signs), 6)
    x[:, 0] = torch.tensor(signs) * x[:, 0].abs()
    return x


@as_one("chunk", [1, 2, 3])  # too few for both branches to show
@as_one("ask", [gram, squared_norms, gradients, diagonal_uniqueness])
def test_points_that_a_layer_does_not_see_are_not_given_the_gradients_of_others(
    ask: Callable[..., torch.Tensor], chunk: int
) -> None:
    with pytest.raises(BadInput, match=r"layer left .*allowed: every point.*mask") as caught:
        ask(Routed(), signed(1, 1, -1, 1, -1, 1, -1, 1), labels(8), chunk=chunk)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("chunk", "signs"),
    [*((chunk, (1, -1, -1, 1, -1, 1, 1, -1)) for chunk in (1, 2, 3, 32)), (32, (1, 1, -1, 1, -1, 1, -1, 1))],
)
def test_a_model_that_routes_points_is_exact_where_that_shows_at_once(chunk: int, signs: tuple[int, ...]) -> None:
    model, x = Routed(), signed(*signs)
    truth = slow_gradients(model, x, labels(8))
    assert torch.allclose(gram(model, x, labels(8), chunk=chunk), truth @ truth.T, rtol=1e-9)
    assert torch.allclose(squared_norms(model, x, labels(8), chunk=chunk), truth.square().sum(1), rtol=1e-9)


def test_passes_in_which_a_layer_sees_other_numbers_of_positions_are_not_mixed() -> None:
    model, x = Cropped(), torch.tensor([[1, 2, 3], [4, 5, 0], [6, 7, 8], [6, 0, 0], [7, 0, 0], [8, 0, 0]])
    truth = slow_gradients(model, x, labels(6))
    assert torch.allclose(gram(model, x, labels(6)), truth @ truth.T, rtol=1e-9)
    with pytest.raises(BadInput, match=r"layer words .*allowed: one number.*give chunk=6") as caught:
        gram(model, x, labels(6), chunk=3)
    assert "\n" not in str(caught.value)


@as_one("name", ["batch norm", "dropout", "functional", "depth", "frozen"])
def test_made_auditable_repairs_what_it_is_offered_for(name: str) -> None:
    model = MODELS[name][0]()
    modes = [module.training for module in model.modules()]
    fixed = made_auditable(model)
    truth = slow_gradients(fixed, drawn(4, 6), labels(4))
    assert torch.allclose(gram(fixed, drawn(4, 6), labels(4)), truth @ truth.T, rtol=1e-9)
    assert [module.training for module in model.modules()] == modes
    if name != "frozen":
        assert not any(module.training for module in fixed.modules())


def test_made_auditable_keeps_what_is_frozen_on_purpose_and_refuses_what_it_cannot_repair() -> None:
    model = nn.Sequential(nn.Linear(6, 4).requires_grad_(False), nn.Linear(4, 4))
    assert [each.requires_grad for each in made_auditable(model).parameters()] == [False, False, True, True]
    with pytest.raises(BadInput, match="without running statistics"):
        made_auditable(MODELS["no statistics"][0]())
    with pytest.raises(BadInput, match="cannot be copied"):
        made_auditable(fresh())


def test_dropout_that_never_drops_is_no_obstacle() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.0))
    assert gram(model, drawn(3, 6), labels(3)).shape == (3, 3)


def spoilt(value: float) -> torch.Tensor:
    x = drawn(4, 6)
    x[2, 1] = value
    return x


POINTS: list[tuple[torch.Tensor, torch.Tensor, str]] = [
    (drawn(1, 6), labels(1), "number of points is 1; .* give 2 or more"),
    (drawn(0, 6), labels(0), "number of points is 0"),
    (drawn(4, 6), labels(3), "4 points and y 3 labels"),
    (spoilt(torch.nan), labels(4), "point 2 is not finite"),
    (spoilt(torch.inf), labels(4), "point 2 is not finite"),
    (drawn(4, 6), torch.tensor([0, 1, 4, 0]), "label 4 is out of range.*0 to 3"),
    (drawn(4, 6), torch.tensor([0, 1, -1, 0]), "label -1 is out of range"),
    (drawn(4, 6), labels(4).float(), "give integer labels"),
    (drawn(4, 6), labels(4)[:, None], "give integer labels"),
]


@as_one("x, y, says", POINTS)
def test_points_that_cannot_be_asked_are_refused(x: torch.Tensor, y: torch.Tensor, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        gram(nn.Linear(6, CLASSES), x, y)
    assert "\n" not in str(caught.value)


def alone_refused(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if len(y) == 1:
        raise ValueError("no single points")
    return logits.sum(1)


@as_one(
    "change, says",
    [
        ({"loss": "cross_entrpy"}, "did you mean 'cross_entropy'"),
        ({"loss": lambda logits, y: logits.sum()}, "one loss a point"),
        ({"loss": lambda logits, y: logits.sum(1).mul(torch.inf)}, "point 0 is not finite"),
        ({"loss": lambda logits, y: torch.ones(len(y))}, "loss does not lead back to the logits"),
        ({"loss": lambda logits, y: logits.detach().sum(1)}, "loss does not lead back to the logits"),
        ({"loss": lambda logits, y: (logits - logits.mean(0)).square().sum(1)}, "loss mixes .*logits and label alone"),
        ({"loss": lambda logits, y: F.cross_entropy(logits, y).expand(len(y))}, "loss mixes"),
        ({"loss": lambda logits, y: F.cross_entropy(logits, y, reduction="none") / len(y)}, "loss mixes"),
        ({"loss": lambda logits, y: logits.sum(1) / logits.detach().std(0).sum()}, "loss mixes"),
        ({"loss": lambda logits, y: logits.sum(1) * torch.rand(())}, "loss mixes"),
        ({"loss": alone_refused}, r"loss: it cannot be asked about one point alone \(no single"),
        ({"model": Cast(), "dtype": torch.float32}, "layer body computes in torch.bfloat16.*autocast.*torch.float64"),
        ({"chunk": 0}, "chunk is 0"),
        ({"memory": 0}, "memory is 0"),
        ({"parameter_chunk": -1}, "parameter_chunk is -1"),
        ({"dtype": torch.bfloat16}, "dtype is torch.bfloat16"),
    ],
)
def test_settings_are_refused_in_one_line(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        gram(**{"model": nn.Linear(6, CLASSES), "x": drawn(4, 6), "y": labels(4)} | change)
    assert "\n" not in str(caught.value)


@as_one(
    "change, says",
    [
        ({"chunk": 1.5}, "chunk is 1.5; it must be a whole number"),
        ({"device": "gpu"}, r"device is 'gpu': .*; allowed: cpu, or an accelerator"),
        ({"device": "meta"}, "device is 'meta': "),
        ({"x": drawn(3, 5)}, r"cannot answer points of shape \(5,\) and torch.float64 \(.*\); give x as"),
        ({"x": torch.ones(3, 6, dtype=torch.int64)}, "cannot answer points of .* torch.int64"),
        ({"model": nn.Linear}, "model is <class .*; allowed: a torch.nn.Module"),
    ],
)
def test_what_torch_would_answer_with_a_traceback_is_said_in_one_line(change: dict[str, object], says: str) -> None:
    asked: dict[str, Any] = {"model": nn.Linear(6, CLASSES), "x": drawn(3, 6), "y": labels(3)} | change
    with pytest.raises(BadInput, match=says) as caught:
        gram(**asked)
    assert "\n" not in str(caught.value)


def test_gradients_that_do_not_fit_are_refused_before_they_are_made() -> None:
    model, x, y = case("cnn")
    with pytest.raises(BadInput, match="raise it, or use gram"):
        gradients(model, x, y, memory=100)


@as_one("ridge", [0.0, -1.0, float("nan"), float("inf")])
def test_a_ridge_must_be_positive(ridge: float) -> None:
    with pytest.raises(BadInput, match="allowed: a number above 0"):
        diagonal_uniqueness(nn.Linear(6, CLASSES), drawn(4, 6), labels(4), ridge=ridge)


def test_points_are_given_as_a_set_as_a_pair_or_as_torchs_data_set() -> None:
    model, x, y = nn.Linear(6, CLASSES), drawn(4, 6), labels(4)
    expected = gradient_uniqueness(model, TensorSet(x, y))
    shuffled = DataLoader(TensorDataset(x, y), batch_size=2, shuffle=True)
    items = [(one, int(label)) for one, label in zip(x, y, strict=True)]
    for data in (
        (x, y),
        [x, y],
        TensorDataset(x, y),
        (x.numpy(), y),
        (x, y.numpy()),
        shuffled,
        Subset(items, range(4)),
    ):
        assert (gradient_uniqueness(model, data) == expected).all()
    for wrong in ((x,), (x, y, y), TensorDataset(x), x.numpy(), None, {"x": x, "y": y}):
        with pytest.raises(BadInput, match="give inputs and labels"):
            gradient_uniqueness(model, wrong)
    with pytest.raises(BadInput, match="4 inputs but 3 labels"):
        gradient_uniqueness(model, (x, y[:3]))
