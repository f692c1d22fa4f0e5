"""Architectures of users' own: a class of ``nn.Module``, a function that builds one, or an ``Architecture``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, make_dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from audits.errors import BadInput
from audits.models.base import Architecture, without_numbers
from audits.models.bert import token_ids
from audits.models.recurrent import differentiable
from audits.own.code import first_line
from audits.own.generators import seeded
from audits.own.settings import fields_of, given, modules_behind, parameters_of
from audits.own.subclasses import subclass

SHAPE = ("shape", "input_shape")
CLASSES = ("classes", "num_classes", "n_classes")
OUTPUT = "output"
POINTS = 2  # that a model is tried on
STORED = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""Whole numbers that a model may hold in the store, beside floats."""


class OwnArchitecture(Architecture):
    """What a user's class or function builds; the parameters of its signature are the settings.

    Parameters called ``shape`` or ``input_shape`` and ``classes``, ``num_classes`` or ``n_classes`` are given what the
    data have; no others are filled in. Where the module returns a dict, a tuple or an object, the setting ``output``
    names the key, index or attribute of the logits.
    """

    made_by: ClassVar[Callable[..., Any]]
    given: ClassVar[tuple[str, ...]]
    """The settings that go to ``made_by``."""

    def build(self, shape: tuple[int, ...], classes: int, seed: int) -> nn.Module:
        """Return a freshly initialised module; all global generators that it may draw from are seeded.

        Its weights lie in memory as the user's code has laid them (``view`` needs that).
        """
        if classes < 2:
            raise BadInput(f"model.name: {self.name} needs at least 2 classes, the data has {classes}")
        with seeded(seed, []):
            return differentiable(self.layers(shape, classes))

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        made_by = type(self).made_by
        named = parameters_of(made_by)
        known = {name: shape for name in SHAPE if name in named} | {name: classes for name in CLASSES if name in named}
        try:
            model = made_by(**known, **given(self, type(self).given))
        except BadInput:
            raise
        except Exception as error:  # the user's code may raise anything; the one line says what
            raise BadInput(f"model.name: {self.name} raised {type(error).__name__}: {first_line(error)}") from error
        if not isinstance(model, nn.Module):
            raise BadInput(f"model.name: {self.name} returned {type(model).__name__}; needed: a torch.nn.Module")
        for module in model.modules():
            if isinstance(module, nn.Embedding | nn.EmbeddingBag):
                module.register_forward_pre_hook(WholeIds(self.name), with_kwargs=True)
        if (output := getattr(self, OUTPUT, None)) is not None:
            model.register_forward_hook(Picked(output))
        if any(is_lazy(each) for each in (*model.parameters(), *model.buffers())):
            answered(model.eval(), shape, self.name)  # gives lazy layers their shapes
            model.train()
        return model


class WholeIds:
    """A forward hook that gives an embedding its ids as the whole numbers that they are; points are floats."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the arguments of a call of ``module``, an embedding, the ids as int64."""
        first = args[0] if args else kwargs.get("input")
        if not (isinstance(first, torch.Tensor) and first.is_floating_point()):
            return args, kwargs
        ids = token_ids(first, module.num_embeddings, self.name, "give the embedding a row for each id")
        return ((ids, *args[1:]), kwargs) if args else (args, {**kwargs, "input": ids})


class Picked:
    """A forward hook that takes the logits out of a dict, a tuple or an object."""

    def __init__(self, output: str | int) -> None:
        self.output = output

    def __call__(self, module: nn.Module, inputs: Any, answer: Any) -> Any:
        """Return the part of ``answer`` that is called ``output``."""
        try:
            if isinstance(self.output, str) and not isinstance(answer, dict):
                return getattr(answer, self.output)
            return answer[self.output]
        except (AttributeError, KeyError, IndexError, TypeError):
            raise BadInput(
                f"model.settings.output is {self.output!r}, but the model returns {in_words(answer)}"
            ) from None


def adapted(found: Any, name: str, module: str = "") -> type[Architecture]:
    """Return the architecture behind the object ``found``, which a plan calls ``name``; ``module`` offers it.

    Raises BadInput for what is neither a class of modules, a function, nor an ``Architecture``.
    """
    if isinstance(found, type) and issubclass(found, Architecture):
        return subclass(found, name, Architecture, "model.name:", module)
    if isinstance(found, nn.Module):
        raise BadInput(f"model.name: {name} is a model, not what makes one; name its class, or a function")
    if not callable(found):
        raise BadInput(f"model.name: {name} is {type(found).__name__}; needed: a class of nn.Module or a function")
    own = fields_of(found, f"model.name: {name}", (*SHAPE, *CLASSES))
    picked = [] if OUTPUT in parameters_of(found) else [(OUTPUT, str | int | None, field(default=None))]
    kind = make_dataclass(
        getattr(found, "__name__", "Own"),
        [*own, *picked],
        bases=(OwnArchitecture,),
        frozen=True,
        kw_only=True,
        namespace={
            "name": name,
            "made_by": staticmethod(found),
            "given": tuple(each for each, _, _ in own),
            "made_of": (__name__, *modules_behind(found, name, module)),
            "__doc__": found.__doc__ or "",
        },
    )
    kind.__module__ = __name__
    return kind


def tried(architecture: Architecture, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a model of a user's architecture that answers points of ``shape`` by logits, and that the store can keep.

    It is made without numbers (on the device "meta") where its code allows that. Raises BadInput in one line.
    """
    try:
        with without_numbers():
            model = architecture.build(shape, classes, seed=0)
            answer = answered(model.eval(), shape, architecture.name)
    except BadInput:  # it may be the device that the user's code cannot do with
        model = architecture.build(shape, classes, seed=0)
        answer = answered(model.eval(), shape, architecture.name)
    check_answer(architecture, answer, classes)
    check_state(model, architecture.name)
    return model


def answered(model: nn.Module, shape: tuple[int, ...], name: str) -> Any:
    """Return what ``model`` says about two points of ``shape``; BadInput where it raises."""
    device = next((each.device for each in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    try:
        with torch.no_grad():
            return model(torch.zeros((POINTS, *shape), device=device))
    except BadInput:
        raise
    except Exception as error:  # the user's code may raise anything; the one line says what
        raise BadInput(
            f"model.name: {name} cannot read points of shape {shape}: {type(error).__name__}: {first_line(error)}"
        ) from error


def check_answer(architecture: Architecture, answer: Any, classes: int) -> None:
    """Refuse an answer that is not logits (points, classes)."""
    wanted = f"needed: logits of shape ({POINTS}, {classes}) for {POINTS} points and {classes} classes"
    if not isinstance(answer, torch.Tensor):
        raise BadInput(
            f"model.name: {architecture.name} returns {in_words(answer)}; name the logits among them, for example "
            "with model.settings.output: logits (a key or an attribute) or 0 (an index)"
        )
    if tuple(answer.shape) != (POINTS, classes):
        raise BadInput(f"model.name: {architecture.name} returns shape {tuple(answer.shape)}; {wanted}")
    if not answer.is_floating_point():
        raise BadInput(f"model.name: {architecture.name} returns {answer.dtype}; {wanted}, as floats")


def check_state(model: nn.Module, name: str) -> None:
    """Refuse a model without parameters, or with a state that safetensors cannot hold."""
    if not any(True for _ in model.parameters()):
        raise BadInput(f"model.name: {name} has no parameters, so there is nothing to train")
    for key, value in model.state_dict().items():
        if not isinstance(value, torch.Tensor):
            raise BadInput(f"model.name: {name} keeps {key} in its state, which is {type(value).__name__}, no tensor")
        if not (value.is_floating_point() or value.dtype in STORED):
            raise BadInput(
                f"model.name: {name} keeps {key} as {value.dtype}; allowed: floats, whole numbers, bool (hold real "
                "and imaginary parts in one real tensor, torch.view_as_real)"
            )


def in_words(answer: Any) -> str:
    """Return what a model's answer is: its type, and the names in it."""
    if isinstance(answer, dict):
        return f"a dict of {', '.join(map(repr, answer))}"
    if isinstance(answer, tuple | list):
        return f"a {type(answer).__name__} of {len(answer)}"
    return f"a {type(answer).__name__}"
