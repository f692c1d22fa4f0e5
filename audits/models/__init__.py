"""Architectures by name; importing this package fills the registry ``MODELS``."""

from audits.models import cnn, mlp, resnet18, swin_t, vgg16
from audits.models.registry import MODELS, Architecture, make_model

__all__ = ["MODELS", "Architecture", "cnn", "make_model", "mlp", "resnet18", "swin_t", "vgg16"]
