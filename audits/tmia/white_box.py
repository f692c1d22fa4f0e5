"""Features of points in the weights of a model: those of Nasr et al., and the displacement of Leino and Fredrikson.

Both are made by whoever holds a model, one model at a time; neither takes anybody's membership. Units of hidden layers
do not correspond between models, so activations enter in an order that does not depend on their places.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from audits.arrays import Floats
from audits.data.tensors import TensorSet, as_float
from audits.errors import BadInput
from audits.gradients.gram import CHUNK
from audits.gradients.white_box import white_box_features
from audits.models.layers import layers_of

TOP_ACTIVATIONS, TOP_LOGITS = 10, 3
TINY = 1e-12  # added to losses and norms, which may be 0, before their logarithm
DECAY = 1e-3
"""Weight decay of the proxy head, ½·DECAY·‖W‖²: without it, separable features have no best head."""
STEPS = 200


def nasr_features(model: nn.Module, points: TensorSet, *, chunk: int = CHUNK) -> NDArray[np.float32]:
    """Return features (N, F) of ``points`` for the attack of Nasr et al. (arXiv 1812.00910, section III).

    The logarithms of the loss of ``points.y`` and of its gradient's norm in each parameter tensor; the L2 norm of each
    layer's output and the share of it above 0; the ``TOP_ACTIVATIONS`` largest inputs of the head; and the log
    posterior of ``points.y`` and the ``TOP_LOGITS`` largest others in falling order (zeros where there are fewer).
    Deviations: norms in place of gradients, for which the paper has a convolution a layer; summaries of activations in
    place of the activations, because the attack learns from other models than the one it asks. Memory: that of
    ``white_box_features``, and 4·N·(1 + parameters + width + classes) bytes. Raises BadInput as that does.
    """
    layers = layers_of(model)
    parameters = sum(parameter.requires_grad for parameter in model.parameters())
    head = model.get_submodule(layers[-1].name)
    assert isinstance(head, nn.Linear), "layers_of refuses other heads"
    found = white_box_features(model, points, chunk=chunk).astype(np.float64)
    sizes, hidden, logits = np.split(found, [1 + parameters, 1 + parameters + head.in_features], axis=1)
    likely = torch.from_numpy(logits).log_softmax(1).numpy()
    own = points.y.cpu().numpy()[:, None]
    others = np.where(np.arange(likely.shape[1]) == own, -np.inf, likely)
    parts = [
        np.log(sizes + TINY),
        activations(model, points.x, chunk),
        largest(hidden, TOP_ACTIVATIONS),
        np.take_along_axis(likely, own, axis=1),
        largest(others, min(TOP_LOGITS, likely.shape[1] - 1), TOP_LOGITS),
    ]
    return np.concatenate(parts, axis=1).astype(np.float32)


def largest(values: Floats, count: int, width: int | None = None) -> Floats:
    """Return the ``count`` largest of each row in falling order, then zeros up to ``width`` columns (``count``)."""
    kept = -np.sort(-values, axis=1)[:, :count]
    return np.pad(kept, ((0, 0), (0, (width or count) - kept.shape[1])))


@torch.no_grad()
def activations(model: nn.Module, x: torch.Tensor, chunk: int = CHUNK) -> Floats:
    """Return (N, 2·layers): the L2 norm of each layer's output at ``x`` (N, ...), and the share of it above 0.

    Layers are those of ``layers_of``, each read behind its normalisation. A layer that is run more than once has its
    last output read. The model is to be in eval mode; its hooks are taken away again.
    """
    held: dict[int, torch.Tensor] = {}
    modules = [model.get_submodule(layer.modules[-1]) for layer in layers_of(model)]

    def keep(place: int) -> Callable[[nn.Module, object, torch.Tensor], None]:
        def hook(module: nn.Module, inputs: object, output: torch.Tensor) -> None:
            flat = output.flatten(1).double()
            held[place] = torch.stack([flat.norm(dim=1), (flat > 0).double().mean(1)], dim=1)

        return hook

    handles = [module.register_forward_hook(keep(place)) for place, module in enumerate(modules)]
    rows = []
    try:
        for part in x.split(chunk):
            model(as_float(part))
            rows.append(torch.cat([held[place] for place in range(len(modules))], dim=1))
    finally:
        for handle in handles:
            handle.remove()
    return torch.cat(rows).cpu().numpy()


def displacement(model: nn.Module, points: TensorSet, outside: TensorSet, *, chunk: int = CHUNK) -> Floats:
    """Return log softmax(ŵ·h(x) + b̂)_y − log softmax(w̃·h(x) + b̃)_y (N,) float64 of ``points``.

    ŵ, b̂ is the model's head and h its inputs; w̃, b̃ is a *proxy* of the head, learnt on ``outside``, points that the
    model did not train on, seen through the model's own features. Where the model leans on a feature more than the
    proxy does, the lean comes from its training set, and a point that shows the feature is likely to be in it. After
    the attack ``bayes-wb`` of Leino and Fredrikson, "Stolen Memories" (USENIX Security 2020, arXiv 1906.11798; its
    Bayes-optimal attack on linear softmax models, with parameters from a proxy model). Deviations: the displaced logit
    (ŵ_y − w̃_y)·h + b̂_y − b̃_y is taken less the difference of both log-sum-exps, since heads of over-fitted models and
    of proxies differ in scale above all (on digits its AUC went from below to above chance with the proxy's penalty);
    only the head is displaced (the paper goes on to deeper layers by local linear approximations); and the proxy is the
    minimiser of cross-entropy and ½·``DECAY``·‖W‖² (full batches, L-BFGS) in place of a head trained by the model's
    recipe. Memory: 8·(N + M)·width bytes for M points outside.
    """
    head = model.get_submodule(layers_of(model)[-1].name)
    assert isinstance(head, nn.Linear), "layers_of refuses other heads"
    if len(outside) == 0:
        raise BadInput(
            "a proxy of the head needs points that the model did not train on; raise audit.reference_samples"
        )
    seen, known = head_inputs(model, head, points.x, chunk), head_inputs(model, head, outside.x, chunk)
    weight, bias = proxy_head(known, outside.y, head.out_features)
    with torch.no_grad():
        own = F.cross_entropy(
            F.linear(seen, head.weight.double(), None if head.bias is None else head.bias.double()),
            points.y,
            reduction="none",
        )
        theirs = F.cross_entropy(F.linear(seen, weight, bias), points.y, reduction="none")
    found: Floats = (theirs - own).cpu().numpy()
    return found


@torch.no_grad()
def head_inputs(model: nn.Module, head: nn.Module, x: torch.Tensor, chunk: int) -> torch.Tensor:
    """Return the inputs (N, width) float64 of ``head`` at ``x``."""
    held: list[torch.Tensor] = []
    handle = head.register_forward_pre_hook(lambda module, inputs: held.append(inputs[0].double()))
    try:
        for part in x.split(chunk):
            model(as_float(part))
    finally:
        handle.remove()
    return torch.cat(held)


def proxy_head(features: torch.Tensor, y: torch.Tensor, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights (classes, width) and biases (classes,) of the softmax regression of ``y`` on ``features``.

    Features are divided by their largest root mean square while the minimum is sought, which L-BFGS reaches in fewer
    steps; the weight decay is that of the weights as they are returned.
    """
    scale = features.square().mean(0).max().sqrt().clamp_min(TINY)
    weight = features.new_zeros(classes, features.shape[1], requires_grad=True)
    bias = features.new_zeros(classes, requires_grad=True)
    search = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")
    scaled = features / scale

    def loss() -> torch.Tensor:
        search.zero_grad()
        value = F.cross_entropy(scaled @ weight.T + bias, y) + DECAY / 2 * (weight / scale).square().sum()
        value.backward()
        return value

    search.step(loss)
    return (weight / scale).detach(), bias.detach()
