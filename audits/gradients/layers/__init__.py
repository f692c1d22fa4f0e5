"""Gradients of single points, one type of layer a file."""

from audits.gradients.layers.base import LAYERS, Call, LayerRule, OuterRule, key_of, rule_of

__all__ = ["LAYERS", "Call", "LayerRule", "OuterRule", "key_of", "rule_of"]
