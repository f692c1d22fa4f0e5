"""Names and one-line descriptions of everything that a plan or a command can name."""

from __future__ import annotations

import inspect
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audits.data.catalogue import CATALOGUE
from audits.errors import BadInput
from audits.models import MODELS, make_model
from audits.models.base import without_numbers
from audits.models.layers import layers_of
from audits.own.entry_points import offers, refusals
from audits.registry import Registry
from orchestrator.cli.lines import say
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.judgement.wording import capital
from orchestrator.kinds import GROUP, KINDS, kind_named, kind_names
from tune_spaces import SWEEPS

if TYPE_CHECKING:
    from torch import nn

SHAPES = ((3, 32, 32), (3, 299, 299), (256,))  # images or tokens; layers are counted on the first that a model reads
CLASSES = 10
SENTENCE_END = re.compile(r"[.?!](?=\s)")
ABBREVIATED = ("al", "Fig", "Sec", "Eq", "e.g", "i.e", "vs")
CODE = re.compile(r"(?::\w+:)?(`+)([^`]+)\1")
OF_ALL = ("audits", "models", "data", "sweeps", "plans")
"""Lists that do not depend on what kinds of audits have."""


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


def lists() -> list[str]:
    """Return the names of all lists; imports the audits, to see what each has."""
    own = dict.fromkeys(entry for _, kind in kinds() for entry in kind.registries)
    return [*OF_ALL, *own]


def kinds() -> list[tuple[str, Kind]]:
    """Return all kinds of audits by name; one line on standard error for each that a package offers and that fails."""
    found = []
    for name in kind_names():
        try:
            found.append((name, kind_named(name)))
        except BadInput as error:
            warn(error)
    for line in refusals(offers(GROUP), KINDS).values():
        warn(f"audit {line}")
    return found


def warn(text: object) -> None:
    """Print a warning on standard error."""
    say(f"warning: {text}", err=True)


def listing(what: str) -> list[tuple[str, str]]:
    """Return (name, description) of all audits, models, data, sweeps, plans, or of what kinds of audits have, such as
    attacks; sorted by name."""
    return [(name, plain(text)) for name, text in marked_listing(what)]


def marked_listing(what: str) -> list[tuple[str, str]]:
    """Return the list of ``what``, descriptions as they are written, with marks of code."""
    match what:
        case "audits":
            packages = {offer.name: offer.package for offer in offers(GROUP)}
            return [
                (name, kind.question if name in KINDS else f"{kind.question} [{packages[name]}]")
                for name, kind in kinds()
            ]
        case "models":
            return described(MODELS)
        case "data":
            return [
                (source.form, source.description + from_package(CATALOGUE, name)) for name, source in usable(CATALOGUE)
            ]
        case "sweeps":
            return [(name, SWEEPS[name].title) for name in SWEEPS]
        case "plans":
            return [(name, first_comment(text)) for name, text in shipped_plans().items()]
    found = {name: kind.registries[what] for name, kind in kinds() if what in kind.registries}
    if not found:
        raise ValueError(f"no list of {what}")
    prefix = len(found) > 1
    return [
        (entry, f"{name}: {text}" if prefix else text)
        for name, registry in found.items()
        for entry, text in described(registry)
    ]


def layered_models() -> list[LayeredModel]:
    """Return every architecture of this project, sorted by name, with the layers that a student can keep frozen."""
    return [layered(name) for name in MODELS if not MODELS.is_own(name)]


def layered(name: str) -> LayeredModel:
    """Return the architecture ``name`` with its layers; its weights are never made."""
    problem = ""
    for shape in SHAPES:
        try:
            with without_numbers():
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
    """Return the entries of a registry with the first sentence of their docstrings."""
    return [(name, first_sentence(entry) + from_package(registry, name)) for name, entry in usable(registry)]


def usable(registry: Registry[Any]) -> list[tuple[str, Any]]:
    """Return the entries of a registry by name; one line on standard error for each that a package offers in vain."""
    found = []
    for name in registry:
        try:
            found.append((name, registry[name]))
        except BadInput as error:
            warn(f"{registry.kind} {error}")
    for line in registry.refused().values():
        warn(f"{registry.kind} {line}")
    return found


def from_package(registry: Registry[Any], name: str) -> str:
    """Return the package that offers a component, in words; "" for those of this project."""
    offer = registry.offered().get(name)
    return f" [{offer.package}]" if offer else ""


def first_sentence(entry: object) -> str:
    """Return the first sentence of an entry's docstring, that of a function without the verb of what it returns."""
    line = opening(inspect.getdoc(entry) or "")
    text = line.removeprefix("Return ")
    return line if text == line else capital(text)


def first_comment(text: str) -> str:
    """Return the first sentence of the comment at the head of a plan file."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return opening("\n".join(line[1:].strip() for line in lines))


def opening(text: str) -> str:
    """Return the first sentence of a text on one line; it ends with its paragraph at the latest."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    for mark in SENTENCE_END.finditer(paragraph):
        before = paragraph[: mark.start()]
        if before.count("(") <= before.count(")") and not before.endswith(ABBREVIATED):
            return paragraph[: mark.end()]
    return paragraph


def plain(text: str) -> str:
    """Return a text without the marks of code in it."""
    return CODE.sub(r"\2", text)
