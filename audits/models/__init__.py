"""Architectures by name; importing this package fills the registry ``MODELS``."""

from audits.models import bert, cnn, inception_v3, mlp, resnet18, resnet50, swin_t, vgg16, vgg19
from audits.models.registry import MODELS, Architecture, make_model

__all__ = [
    "MODELS",
    "Architecture",
    "bert",
    "cnn",
    "inception_v3",
    "make_model",
    "mlp",
    "resnet18",
    "resnet50",
    "swin_t",
    "vgg16",
    "vgg19",
]
