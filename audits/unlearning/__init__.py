"""Unlearning methods by name; importing this package fills the registry ``UNLEARNERS``."""

from audits.unlearning import finetune, gradient_ascent, identity, retrain, scrub
from audits.unlearning.base import UNLEARNERS, Unlearner, make_unlearner

__all__ = [
    "UNLEARNERS",
    "Unlearner",
    "finetune",
    "gradient_ascent",
    "identity",
    "make_unlearner",
    "retrain",
    "scrub",
]
