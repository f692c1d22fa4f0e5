"""A two-layer network with its gradients and optimisers written out in NumPy: the slow form of training loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

Floats = NDArray[np.float64]
State = dict[str, Floats]


def softmax(logits: Floats) -> Floats:
    """Return the softmax of every row."""
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def one_hot(y: NDArray[np.int64], classes: int) -> Floats:
    """Return (N, classes) rows with a single one."""
    return np.eye(classes)[y]


class SlowNet:
    """x → W2·relu(W1·x + b1) + b2 in float64, with the gradient of any loss whose gradient at the logits is known."""

    def __init__(self, model: nn.Module) -> None:
        linears = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
        assert len(linears) == 2
        self.weights = [
            value.detach().double().numpy().copy() for layer in linears for value in (layer.weight, layer.bias)
        ]

    def logits(self, x: Floats) -> Floats:
        """Return (N, classes)."""
        w1, b1, w2, b2 = self.weights
        return np.maximum(x @ w1.T + b1, 0.0) @ w2.T + b2

    def gradients(self, x: Floats, at_logits: Floats) -> list[Floats]:
        """Return the gradient of each weight, given that of the loss at the logits (N, classes)."""
        w1, b1, w2, _ = self.weights
        before = x @ w1.T + b1
        hidden = np.maximum(before, 0.0)
        back = (at_logits @ w2) * (before > 0)
        return [back.T @ x, back.sum(0), at_logits.T @ hidden, at_logits.sum(0)]

    def entropy_gradient(self, x: Floats, y: NDArray[np.int64], smoothing: float = 0.0) -> Floats:
        """Return the gradient at the logits of the mean cross entropy, towards smoothed labels on request."""
        found = softmax(self.logits(x))
        classes = found.shape[1]
        wanted = (1 - smoothing) * one_hot(y, classes) + smoothing / classes
        return (found - wanted) / len(x)


def clipped(gradients: list[Floats], largest: float) -> list[Floats]:
    """Return the gradients scaled to a joint L2 norm of at most ``largest``."""
    norm = np.sqrt(sum(float((part**2).sum()) for part in gradients))
    return [part * min(1.0, largest / (norm + 1e-6)) for part in gradients]


class SlowSGD:
    """Gradient descent with momentum and weight decay (as L2 penalty)."""

    def __init__(self, net: SlowNet, momentum: float, weight_decay: float) -> None:
        self.net, self.momentum, self.weight_decay = net, momentum, weight_decay
        self.speed = [np.zeros_like(part) for part in net.weights]

    def step(self, gradients: list[Floats], rate: float) -> None:
        """Move all weights once."""
        for i, gradient in enumerate(gradients):
            whole = gradient + self.weight_decay * self.net.weights[i]
            self.speed[i] = self.momentum * self.speed[i] + whole
            self.net.weights[i] = self.net.weights[i] - rate * self.speed[i]


class SlowAdam:
    """Adam (Kingma and Ba, algorithm 1); weight decay as L2 penalty, or decoupled as in AdamW."""

    def __init__(self, net: SlowNet, weight_decay: float, decoupled: bool = False) -> None:
        self.net, self.weight_decay, self.decoupled, self.t = net, weight_decay, decoupled, 0
        self.first = [np.zeros_like(part) for part in net.weights]
        self.second = [np.zeros_like(part) for part in net.weights]

    def step(self, gradients: list[Floats], rate: float) -> None:
        """Move all weights once."""
        self.t += 1
        for i, gradient in enumerate(gradients):
            weight = self.net.weights[i]
            if self.decoupled:
                weight = weight * (1 - rate * self.weight_decay)
                whole = gradient
            else:
                whole = gradient + self.weight_decay * weight
            self.first[i] = 0.9 * self.first[i] + 0.1 * whole
            self.second[i] = 0.999 * self.second[i] + 0.001 * whole**2
            m, v = self.first[i] / (1 - 0.9**self.t), self.second[i] / (1 - 0.999**self.t)
            self.net.weights[i] = weight - rate * m / (np.sqrt(v) + 1e-8)


def largest_difference(model: nn.Module, net: SlowNet) -> float:
    """Return the largest absolute difference between the weights of both."""
    return max(
        float(np.abs(parameter.detach().numpy() - weight).max())
        for parameter, weight in zip(model.parameters(), net.weights, strict=True)
    )
