"""Architectures by name, one file each."""

from audits.lazy import lazily
from audits.models.base import MODELS, Architecture, make_model

__all__ = ["MODELS", "Architecture", "make_model"]
__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.models.layers": ("Layer", "layers_of"),
    },
)
