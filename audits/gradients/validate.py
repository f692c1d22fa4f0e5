"""Checks that every point has a gradient of its own, and copies of models for which that holds."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import is_lazy

from audits.errors import BadInput, how_many

FIX = "use made_auditable(model)"
ALONE = {torch.float32: 1e-3, torch.float64: 1e-8}  # of the largest logit


def made_auditable(model: nn.Module) -> nn.Module:
    """Return a copy of ``model`` in eval mode (dropout off, BatchNorm's running statistics in use).

    If no parameter needs a gradient, all do in the copy. Raises BadInput for what no mode repairs: BatchNorm without
    running statistics, and for what cannot be copied.
    """
    found = copied(model).eval()
    if not any(parameter.requires_grad for parameter in found.parameters()):
        found.requires_grad_(True)
    check_auditable(found)
    return found


def copied(model: nn.Module, how: Callable[[nn.Module], nn.Module] = copy.deepcopy) -> nn.Module:
    """Return a copy of ``model`` made by ``how``; BadInput for a model that holds what cannot be copied."""
    try:
        return how(model)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as error:  # a weight that a hook has made, or an attribute such as a lock
        reason = " ".join(str(error).split())[:120]
        raise BadInput(
            f"model: it cannot be copied ({reason}); call it once under torch.no_grad(), and if that does not help "
            "take off weight_norm or pruning (torch.nn.utils.remove_weight_norm, prune.remove)"
        ) from error


def check_auditable(model: nn.Module) -> None:
    """Raise BadInput when ``model``, as it stands, mixes points, is random, is not finite or has nothing to train."""
    if not isinstance(model, nn.Module):
        raise BadInput(f"model is {model!r}; allowed: a torch.nn.Module, made and trained")
    parameters = dict(model.named_parameters())
    if not parameters:
        raise BadInput("model: it has no parameters, so no point has a gradient; give a trained model")
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise BadInput(f"model: no parameter has requires_grad, so no point has a gradient; {FIX}")
    for name, parameter in parameters.items():
        check_parameter(name, parameter)
        if not bool(torch.isfinite(parameter).all()):
            raise BadInput(f"model: parameter {name} is not finite; train it again with a lower learning rate")
    for name, module in model.named_modules():
        check_layer(f"layer {name}" if name else "it", module)


def check_parameter(name: str, parameter: nn.Parameter) -> None:
    """Refuse a parameter that is not there yet, or is complex."""
    if is_lazy(parameter):
        raise BadInput(
            f"model: parameter {name} has no shape yet (a lazy layer); call the model once on some points and train it"
        )
    if parameter.is_complex():
        raise BadInput(
            f"model: parameter {name} is {parameter.dtype}; allowed: real parameters; hold the real and the imaginary "
            "part in one real parameter (torch.view_as_real) and put them together in forward (torch.view_as_complex)"
        )


def check_layer(words: str, module: nn.Module) -> None:
    """Refuse a layer that mixes points or is random."""
    kind = type(module).__name__
    if isinstance(module, torch.jit.ScriptModule):
        raise BadInput(
            f"model: {words} is a program of torch.jit, whose layers cannot be read; give the model as it was before "
            "torch.jit.script or torch.jit.trace"
        )
    if isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise BadInput(f"model: {words} is a {kind}, which shares points out among devices; give its .module")
    if isinstance(module, _BatchNorm):
        if module.running_mean is None:
            raise BadInput(
                f"model: {words} is a {kind} without running statistics, which mixes the points of a batch in every "
                "mode; train with track_running_stats=True or with GroupNorm (model.settings.norm: group)"
            )
        if module.training:
            raise BadInput(f"model: {words} is a {kind} in train mode, which mixes the points of a batch; {FIX}")
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        if module.scale_grad_by_freq:
            raise BadInput(
                f"model: {words} is an {kind} with scale_grad_by_freq, which divides a point's gradient by how often "
                "its tokens occur in the batch; set it to False"
            )
        if module.max_norm is not None:
            raise BadInput(
                f"model: {words} is an {kind} with max_norm, which changes its own weights whenever it is called; set "
                "it to None"
            )
    if module.training and rate_of(module) > 0:
        raise BadInput(f"model: {words} is a {kind} that drops at random; {FIX}")


def rate_of(module: nn.Module) -> float:
    """Return the rate at which a layer drops while it trains; 0 for layers that do not drop."""
    if isinstance(module, _DropoutNd) or type(module).__name__ == "StochasticDepth":  # torchvision's
        return float(getattr(module, "p", 0.0))
    if isinstance(module, nn.MultiheadAttention | nn.RNNBase):
        return float(module.dropout)
    return 0.0


def check_points(x: torch.Tensor, y: torch.Tensor) -> None:
    """Refuse fewer than two points, another number of labels and inputs that are not finite."""
    if len(x) != len(y):
        raise BadInput(f"x has {how_many(len(x), 'point')} and y {how_many(len(y), 'label')}; give one label a point")
    if len(x) < 2:
        raise BadInput(f"x: the number of points is {len(x)}; uniqueness is measured against others: give 2 or more")
    bad = torch.nonzero(~torch.isfinite(x).flatten(1).all(1)).flatten().tolist() if x.is_floating_point() else []
    if bad:
        raise BadInput(f"x: point {bad[0]} is not finite ({len(bad)} of {len(x)} are not); leave them out")


def check_labels(y: torch.Tensor, classes: int) -> None:
    """Refuse labels that are not integers from 0 to ``classes`` − 1, one a point."""
    if y.ndim != 1 or y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise BadInput(f"y has shape {tuple(y.shape)} and dtype {y.dtype}; give integer labels of shape ({len(y)},)")
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= classes:
        raise BadInput(
            f"y: label {low if low < 0 else high} is out of range; the model's {classes} outputs allow 0 to "
            f"{classes - 1}: give the labels that it was trained on"
        )


def check_alone(together: torch.Tensor, alone: torch.Tensor) -> None:
    """Refuse a model whose logits for a point change with its company or from call to call, or are not finite."""
    if not bool(torch.isfinite(together).all()):
        raise BadInput("model: its logits are not finite; check the scale of x and the weights")
    scale = float(alone.abs().max())
    if together.shape != alone.shape or float((together - alone).abs().max()) > ALONE[together.dtype] * scale:
        raise BadInput(
            f"model: it answers a point differently beside another one or from call to call (random layers, statistics "
            f"of the batch); {FIX}, and replace what still mixes points"
        )
