"""Models that an audit judges, each described so that another process can build it and ask it (``--log-models``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from audits.errors import BadInput
from audits.models.base import MODELS, without_numbers
from orchestrator.engine.jobs.job import Reference

if TYPE_CHECKING:
    from torch import nn

    from audits.data.dataset import Dataset
    from orchestrator.engine.plan.sections import Model

Which = Literal["none", "first", "targets"]
STARTS = ("weights", "digest")
"""Settings of our architectures that say from which file training starts: a trained model needs them no more."""
NOT_IN_NAMES = str.maketrans(dict.fromkeys("/:.%\"' ", "_"))
"""What MLflow does not allow in the name of a model, and blanks."""


@dataclass(frozen=True)
class Published:
    """A model that an audit judges, and where the store keeps it.

    ``name`` says what it is (``scrub-3``), ``number`` counts the targets, ``made_by`` is the method that had it last.
    Its inputs are points of ``data`` as models see them, its outputs logits of ``classes``, by name. ``build`` makes an
    untrained one of ``model``; ``scaled``: it standardises images itself, as torchvision's weights want it.
    ``settings``: those of a run that have the model; () before a run has put the models of its settings together
    (``listed``).
    """

    name: str
    number: int
    made_by: str
    reference: Reference
    model: Model
    data: Dataset
    classes: tuple[str, ...]
    build: Callable[[], nn.Module] = field(repr=False, compare=False)
    scaled: bool = False
    settings: tuple[str, ...] = ()

    def described(self, threads: int) -> dict[str, Any]:
        """Return what ``served_model`` builds a model of, as JSON values; ``threads``: on which the audit asks it."""
        settings = dict(self.model.settings)
        if not MODELS.is_own(self.model.name):
            settings = {name: value for name, value in settings.items() if name not in STARTS}
        return {
            "model": {"name": self.model.name, "settings": settings},
            "shape": list(self.data.shape),
            "value_range": None if self.data.value_range is None else list(self.data.value_range),
            "classes": list(self.classes),
            "scaled": self.scaled,
            "threads": threads,
        }


def bytes_of(models: Sequence[Published]) -> int:
    """Return the bytes of the weights of ``models``."""
    known: dict[str, int] = {}
    for model in models:
        kind = repr(model.described(1))
        if kind not in known:
            known[kind] = sum(each.numel() * each.element_size() for each in shaped(model).state_dict().values())
    return sum(known[repr(model.described(1))] for model in models)


def shaped(model: Published) -> nn.Module:
    """Return an untrained model of the same shapes, without numbers where its code can do without."""
    try:
        with without_numbers():
            return model.build()
    except BadInput:  # it may be the device that a user's own code cannot do with
        return model.build()


def listed(which: Which, by_setting: Mapping[str, Sequence[Published]]) -> list[Published]:
    """Return the models of all settings, each once; ``first``: only those of each setting's first target.

    Different models of one name are told apart by their first setting.
    """
    found: dict[str, Published] = {}
    for setting, models in by_setting.items():
        least = min((model.number for model in models), default=0)
        for model in models:
            if which == "targets" or model.number == least:
                known = found.get(model.reference.key, model)
                found[model.reference.key] = replace(known, settings=tuple(dict.fromkeys((*known.settings, setting))))
    names = [model.name for model in found.values()]
    return [replace(model, name=name_of(model, names.count(model.name) > 1)) for model in found.values()]


def name_of(model: Published, ambiguous: bool) -> str:
    """Return the name of a model in MLflow."""
    whole = f"{model.name}-{model.settings[0]}" if ambiguous else model.name
    return whole.translate(NOT_IN_NAMES)
