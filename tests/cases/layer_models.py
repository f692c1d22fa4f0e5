"""Tiny models of every kind of layer, and their gradients by the slow form: one backward pass a point, in float64."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune

from audits.models import make_model

CLASSES = 4


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(count: int) -> torch.Tensor:
    return torch.arange(count) * 3 % CLASSES


def tokens(count: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(vocabulary, (count, length), generator=torch.Generator().manual_seed(1))


class Pooled(nn.Module):
    """A body on (n, positions, width), the mean over positions and a linear head."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.body(x)
        return self.head((found[0] if isinstance(found, tuple) else found).mean(1))


class Attention(nn.Module):
    """nn.MultiheadAttention, whose weights are used without calling the layers that hold them."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=batch_first)
        self.batch_first = batch_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x if self.batch_first else x.transpose(0, 1)
        found = self.attention(x, x, x)[0]
        return found if self.batch_first else found.transpose(0, 1)


class Encoder(nn.Module):
    """A text classifier: tokens, places (one row for all points), two transformer layers, the first position."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8, padding_idx=0), nn.Embedding(6, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)[None]
        return self.head(self.body(self.words(x) + self.places(places))[:, 0])


class Shared(nn.Module):
    """One linear layer and one norm called three times, with sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.again, self.norm, self.head = nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = torch.tanh(self.norm(self.again(x)))
        return self.head(self.norm(self.again(x[:, :2])).mean(1))


class TwoNames(nn.Module):
    """One linear layer that the model holds under two names, between a norm with two and a parameter outside layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.head = nn.LayerNorm(6), nn.Linear(6, 6), nn.Linear(6, CLASSES)
        self.second, self.again, self.scale = self.first, self.norm, nn.Parameter(torch.ones(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(torch.tanh(self.first(x)))
        return self.head(self.again(torch.tanh(self.second(x))) * self.scale)


class Tied(nn.Module):
    """The words' embedding is the decoder's weight too, called as a function: a hook sees half of its gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.mix, self.head = nn.Embedding(7, 5), nn.Linear(5, 5), nn.Linear(7, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.linear(torch.tanh(self.mix(self.words(x))), self.words.weight).mean(1))


class InPlace(nn.Module):
    """Overwrites its input and the outputs of layers; a parameter stands outside any layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, CLASSES)
        self.token = nn.Parameter(torch.ones(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.first(x.mul_(0.5)), inplace=True)
        return self.head(self.second(x).sigmoid_() + self.token)


class FromTheMean(nn.Module):
    """Subtracts the batch's mean, in any mode and without a layer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x - x.mean(0))


class Sorted(nn.Module):
    """Calls a layer with the points in the order of their first numbers, and puts the answers back in their places."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        order = x[:, 0].argsort()
        return self.head(self.body(x[order]).tanh()[order.argsort()])


class Unbatchable(nn.Module):
    """Reads a number of the input on the way, which vmap cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.ones(6)), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = [row * self.scale if float(row.detach()[0]) > 0 else -row for row in x]
        return self.head(torch.stack(rows))


class RowByRow(nn.Module):
    """Calls a layer with one point at a time, without an axis for the points."""

    def __init__(self, layer: nn.Module, *shape: int) -> None:
        super().__init__()
        self.layer, self.shape = layer, shape
        self.head = nn.Linear(layer(drawn(*shape)).numel(), CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.stack([self.layer(row.reshape(self.shape)).flatten() for row in x]))


class RowOfTokens(nn.Module):
    """Looks up one token at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.words(row[0]) for row in x])


class Turned(nn.Module):
    """Turns its inputs by complex numbers that are no parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turn", torch.polar(torch.ones(6), torch.arange(6) / 6))
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((x * self.turn).imag)


def weight_norm() -> tuple[nn.Module, torch.Tensor]:
    """A linear layer whose weight is no parameter, but made of two in a hook."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the old form is meant
        return called(nn.Sequential(nn.utils.weight_norm(nn.Linear(6, 5)), nn.ReLU(), nn.Linear(5, CLASSES)))


def pruned() -> tuple[nn.Module, torch.Tensor]:
    """Linear layers of which one has lost part of its weight, another part of its bias."""
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, CLASSES))
    prune.l1_unstructured(model[0], "weight", amount=0.3)
    prune.l1_unstructured(model[2], "bias", amount=2)
    return called(model)


def called(model: nn.Module) -> tuple[nn.Module, torch.Tensor]:
    """Return a model on (n, 6) after a call without gradients, which leaves in it only tensors that can be copied."""
    x = drawn(6, 6)
    with torch.no_grad():
        model(x)
    return model, x


def convolution(layer: nn.Module, *shape: int) -> tuple[nn.Module, torch.Tensor]:
    x = drawn(6, *shape)
    width = layer(x).flatten(1).shape[1]
    return nn.Sequential(layer, nn.ReLU(), nn.Flatten(), nn.Linear(width, CLASSES)), x


def architecture(name: str, side: int, **settings: object) -> tuple[nn.Module, torch.Tensor]:
    model = make_model(name, dict(settings)).build((3, side, side), CLASSES, 1)
    x = drawn(5, 3, side, side)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model(x)  # moves the running statistics from 0 and 1
    return model.eval(), x


def bert(**settings: object) -> tuple[nn.Module, torch.Tensor]:
    """A BERT of two blocks, and five texts: whole ones, padded ones and one without a word."""
    sizes = {"vocabulary": 15, "hidden": 8, "heads": 2, "intermediate": 10, "longest": 9, **settings}
    x = tokens(5, 6, 14) + 1
    x[1, 3:], x[3, 1:], x[4] = 0, 0, 0
    return make_model("bert", sizes).build((6,), CLASSES, 1).eval(), x


CASES: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "linear": lambda: (nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, CLASSES, bias=False)), drawn(8, 7)),
    "sequence": lambda: (Pooled(nn.Linear(6, 6), 6), drawn(6, 5, 6)),
    "long_sequence": lambda: (Pooled(nn.Linear(3, 3), 3), drawn(6, 9, 3)),
    "two_axes": lambda: (Pooled(nn.Sequential(nn.Linear(9, 8), nn.Flatten(2)), 16), drawn(6, 3, 2, 9)),
    "conv1d": lambda: convolution(nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), 4, 9),
    "conv2d": lambda: convolution(nn.Conv2d(3, 4, 3, padding=1), 3, 6, 5),
    "conv2d_strides": lambda: convolution(
        nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(2, 0), dilation=(1, 2)), 3, 7, 6
    ),
    "conv2d_groups": lambda: convolution(nn.Conv2d(4, 6, 3, groups=2, bias=False), 4, 5, 5),
    "conv2d_depthwise": lambda: convolution(nn.Conv2d(4, 4, 3, groups=4), 4, 5, 5),
    "conv2d_ghost": lambda: convolution(nn.Conv2d(6, 16, 3), 6, 4, 3),
    "conv2d_ghost_groups": lambda: convolution(nn.Conv2d(12, 16, 3, groups=2), 12, 3, 3),
    "conv2d_reflect": lambda: convolution(nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode="reflect"), 3, 5, 5),
    "conv2d_same": lambda: convolution(nn.Conv2d(3, 4, (2, 3), padding="same", dilation=(1, 2)), 3, 5, 5),
    "conv3d": lambda: convolution(nn.Conv3d(2, 3, (2, 3, 1), padding=1), 2, 3, 4, 3),
    "conv_transpose": lambda: convolution(nn.ConvTranspose2d(3, 4, 3, stride=2), 3, 4, 4),
    "embedding": lambda: (Pooled(nn.Embedding(9, 5, padding_idx=2), 5), tokens(6, 7, 9)),
    "embedding_ghost": lambda: (Pooled(nn.Embedding(90, 5), 5), tokens(6, 3, 90)),
    "layer_norm": lambda: (Pooled(nn.Sequential(nn.Linear(6, 6), nn.LayerNorm((5, 6))), 6), drawn(6, 5, 6)),
    "group_norm": lambda: convolution(nn.Sequential(nn.Conv2d(3, 6, 1), nn.GroupNorm(3, 6)), 3, 4, 4),
    "batch_norm": lambda: convolution(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), 3, 5, 5),
    "batch_norm_1d": lambda: convolution(nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6)), 5),
    "attention": lambda: (Pooled(Attention(True), 6), drawn(5, 4, 6)),
    "attention_other_axis": lambda: (Pooled(Attention(False), 6), drawn(5, 2, 6)),
    "recurrent": lambda: (Pooled(nn.GRU(6, 5, batch_first=True), 5), drawn(5, 4, 6)),
    "shared": lambda: (Shared(), drawn(6, 5, 6)),
    "two_names": lambda: (TwoNames(), drawn(6, 6)),
    "tied": lambda: (Tied(), tokens(6, 4, 7)),
    "in_place": lambda: (InPlace(), drawn(6, 6)),
    "sorted": lambda: (Sorted(), drawn(6, 6)),
    "unbatchable": lambda: (Unbatchable(), drawn(6, 6)),
    "rows_conv1d": lambda: (RowByRow(nn.Conv1d(2, 2, 2), 2, 3), drawn(6, 6)),
    "rows_linear": lambda: (RowByRow(nn.Linear(2, 2), 2), drawn(6, 2)),
    "rows_layer_norm": lambda: (RowByRow(nn.LayerNorm(2), 2), drawn(6, 2)),
    "rows_tokens": lambda: (RowOfTokens(), tokens(6, 3, 9)),
    "encoder": lambda: (Encoder(), tokens(5, 6, 11)),
    "cnn": lambda: architecture("cnn", 12, channels=[4, 6], hidden=8, dropout=0.2),
    "mlp": lambda: architecture("mlp", 5, hidden=[9], batch_norm=True, dropout=0.1),
    "resnet18": lambda: architecture("resnet18", 8, width=4),
    "resnet18_group": lambda: architecture("resnet18", 16, width=4, norm="group"),
    "vgg16": lambda: architecture("vgg16", 32, width=2),
    "swin_t": lambda: architecture("swin_t", 12, width=8, depths=[1, 1, 2, 1]),
    "bert": lambda: bert(dropout=0.1),
}


READ_ONLY: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "sparse_embedding": lambda: (Pooled(nn.Embedding(9, 5, padding_idx=2, sparse=True), 5), tokens(6, 7, 9)),
    "weight_norm": weight_norm,
    "pruned": pruned,
    "complex_buffer": lambda: (Turned(), drawn(6, 6)),
}
"""Not for tests that train: sparse gradients take no weight decay, and a step leaves weights that cannot be copied."""


def case(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Return a float32 model in eval mode, N points and labels."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model, x = (CASES | READ_ONLY)[name]()
    return model.eval(), x, labels(len(x))


def slow_gradients(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return G (N, P) float64, by one backward pass a point."""
    twin = copy.deepcopy(model).double()
    counted = [parameter for parameter in twin.parameters() if parameter.requires_grad]
    rows = []
    for point, label in zip(x, y, strict=True):
        point = point[None].double() if point.is_floating_point() else point[None]
        loss = F.cross_entropy(twin(point), label[None])
        grads = torch.autograd.grad(loss, counted, allow_unused=True, materialize_grads=True)
        rows.append(torch.cat([gradient.to_dense().flatten() for gradient in grads]))
    return torch.stack(rows)
