"""Names and one-line descriptions of everything that a plan or a command can name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput
from audits.registry import Registry

if TYPE_CHECKING:
    from torch import nn

SHAPES = ((3, 32, 32), (3, 299, 299), (256,))  # images or tokens; layers are counted on the first that a model reads
CLASSES = 10


@dataclass(frozen=True)
class NumberedLayer:
    """A layer as transfer learning counts it: ``transfer.n_frozen`` of its ``number`` freezes it and all before it.

    ``kind`` is the class of its first module, which also names it.
    """

    number: int
    name: str
    kind: str
    parameters: int


@dataclass(frozen=True)
class LayeredModel:
    """An architecture with its default settings, for points of ``shape`` and ``classes``; the head last.

    ``shape`` is that of images (C, H, W) or of texts (tokens,). ``problem`` says why it cannot be built here, else "".
    """

    name: str
    shape: tuple[int, ...]
    classes: int
    layers: tuple[NumberedLayer, ...]
    problem: str = ""


def listing(kind: str) -> list[tuple[str, str]]:
    """Return (name, description) of all audits, attacks, unlearners, models, data, sweeps or plans, sorted by name."""
    match kind:
        case "audits":
            from orchestrator.kinds import audit_kind
            from orchestrator.plan import KINDS

            return [(name, audit_kind(name).description) for name in KINDS]
        case "attacks":
            from audits.attacks import ATTACKS
            from audits.disclosure.pool_attacks import POOL_ATTACKS
            from audits.membership.attacks import ATTACKS as MEMBERSHIP

            return [
                *((name, f"apollo: {text}") for name, text in described(ATTACKS)),
                *((name, f"tmia: {text}") for name, text in described(MEMBERSHIP)),
                *((name, f"gnq: {text}") for name, text in described(POOL_ATTACKS)),
            ]
        case "selectors":
            from audits.membership.selectors import SELECTORS

            return described(SELECTORS)
        case "rankings":
            from audits.disclosure.rankings import RANKINGS

            return described(RANKINGS)
        case "unlearners":
            from audits.unlearning import UNLEARNERS

            return described(UNLEARNERS)
        case "models":
            from audits.models import MODELS

            return described(MODELS)
        case "data":
            from audits.data.catalogue import CATALOGUE

            return [(CATALOGUE[name].form, CATALOGUE[name].description) for name in CATALOGUE]
        case "sweeps":
            from tune_spaces import SWEEPS

            return [(name, SWEEPS[name].title) for name in SWEEPS]
        case "plans":
            from orchestrator.plan_files import shipped_plans

            return [(name, first_comment(text)) for name, text in shipped_plans().items()]
    raise ValueError(f"no list of {kind}")


def layered_models() -> list[LayeredModel]:
    """Return every architecture of the registry, sorted by name, with the layers that a student can keep frozen."""
    from audits.models import MODELS

    return [layered(name) for name in MODELS]


def layered(name: str) -> LayeredModel:
    """Return the architecture ``name`` with its layers; its weights are never made."""
    import torch

    from audits.models import make_model
    from audits.models.layers import layers_of

    problem = ""
    for shape in SHAPES:
        try:
            with torch.device("meta"):
                model = make_model(name, {}).build(shape, CLASSES, seed=0)
        except BadInput as error:
            problem = str(error)
            continue
        layers = tuple(
            NumberedLayer(number, layer.name, kind_of(model, layer.name), size(model, layer.parameters))
            for number, layer in enumerate(layers_of(model), start=1)
        )
        return LayeredModel(name, shape, CLASSES, layers)
    return LayeredModel(name, (), CLASSES, (), problem)


def kind_of(model: nn.Module, name: str) -> str:
    """Return the class of the module ``name``, e.g. Conv2d."""
    return type(model.get_submodule(name)).__name__


def size(model: nn.Module, parameters: tuple[str, ...]) -> int:
    """Return how many numbers the named parameters of ``model`` hold."""
    return sum(model.get_parameter(name).numel() for name in parameters)


def described(registry: Registry[Any]) -> list[tuple[str, str]]:
    """Return the entries of a registry with the first line of their docstrings."""
    return [(name, first_docline(registry[name])) for name in registry]


def first_docline(entry: object) -> str:
    """Return the first line of an entry's docstring."""
    return (inspect.getdoc(entry) or "").partition("\n")[0]


def first_comment(text: str) -> str:
    """Return the comment at the head of a plan file."""
    line = text.partition("\n")[0]
    return line.removeprefix("#").strip() if line.startswith("#") else ""
