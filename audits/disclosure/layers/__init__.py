"""Gradients of single points, one type of layer a file; importing this package fills the registry ``LAYERS``."""

from audits.disclosure.layers import batch_norm, conv, embedding, group_norm, layer_norm, linear
from audits.disclosure.layers.base import LAYERS, Call, LayerRule, OuterRule, layer, rule_of

__all__ = [
    "LAYERS",
    "Call",
    "LayerRule",
    "OuterRule",
    "batch_norm",
    "conv",
    "embedding",
    "group_norm",
    "layer",
    "layer_norm",
    "linear",
    "rule_of",
]
