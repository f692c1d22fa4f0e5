"""Unlearning methods by name; importing this package fills the registry ``UNLEARNERS``."""

from audits.unlearning import (
    bad_teacher,
    finetune,
    gradient_ascent,
    identity,
    random_label,
    retrain,
    salun,
    scrub,
    sfr_on,
)
from audits.unlearning.base import UNLEARNERS, Task, Unlearner, make_unlearner

__all__ = [
    "UNLEARNERS",
    "Task",
    "Unlearner",
    "bad_teacher",
    "finetune",
    "gradient_ascent",
    "identity",
    "make_unlearner",
    "random_label",
    "retrain",
    "salun",
    "scrub",
    "sfr_on",
]
