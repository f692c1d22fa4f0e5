"""Unlearning methods by name, one file each."""

from audits.unlearning.base import UNLEARNERS, Unlearner, make_unlearner
from audits.unlearning.task import Task

__all__ = ["UNLEARNERS", "Task", "Unlearner", "make_unlearner"]
