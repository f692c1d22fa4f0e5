"""Settings of users' callables: the parameters of a signature as the fields of a frozen dataclass."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Literal, Union

from audits.errors import BadInput
from audits.own.permission import PREFIX, is_own
from audits.own.sources import module_of, stand_behind

PLAIN = (bool, int, float, str, type(None))


def fields_of(called: Callable[..., Any], name: str, taken: Collection[str]) -> list[tuple[str, Any, Any]]:
    """Return (name, annotation, default) of the parameters of ``called`` that a plan may set.

    Those of ``taken`` are given by the caller. Left out are parameters whose default a plan cannot write (a class, a
    function), and ``*args`` and ``**kwargs``. Raises BadInput for a callable without a signature.
    """
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        raise BadInput(f"{name} has no signature that can be read; write a function around it") from None
    hints = hints_of(called)
    found = []
    for each in parameters:
        if each.name in taken or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        if each.kind is each.POSITIONAL_ONLY:
            raise BadInput(f"{name}: its parameter {each.name!r} takes no name; let it be given by name")
        annotation = hints.get(each.name, Any)
        annotation = annotation if is_plain(annotation) else Any
        if each.default is each.empty:
            found.append((each.name, annotation, dataclasses.field(kw_only=True)))
        elif is_json(each.default):
            annotation = list[Any] if annotation is Any and isinstance(each.default, list) else annotation
            found.append((each.name, annotation, dataclasses.field(default_factory=partial(copy.copy, each.default))))
    return found


def hints_of(called: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function, or of the constructor of a class; {} where they cannot be read."""
    try:
        return typing.get_type_hints(called.__init__ if isinstance(called, type) else called)  # type: ignore[misc]  # of the class itself
    except Exception:  # names that exist for type checkers only
        return {}


def is_plain(annotation: Any) -> bool:
    """Return whether every value of ``annotation`` is one that a plan can write."""
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return True
    if origin in (tuple, list, dict, Union, types.UnionType):
        return all(each is Ellipsis or is_plain(each) for each in typing.get_args(annotation))
    return annotation in PLAIN


def is_json(value: Any) -> bool:
    """Return whether a plan can write ``value``."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def parameters_of(called: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters of ``called``."""
    return set(inspect.signature(called).parameters)


def given(settings: Any, names: Collection[str]) -> dict[str, Any]:
    """Return the fields ``names`` of a dataclass as a user's callable takes them: lists where it wants lists."""
    hints = {field.name: field.type for field in dataclasses.fields(settings)}
    return {name: as_wanted(getattr(settings, name), hints[name]) for name in names}


def as_wanted(value: Any, annotation: Any) -> Any:
    """Return a tuple as a list where the annotation is that of a list."""
    return list(value) if isinstance(value, tuple) and typing.get_origin(annotation) is list else value


def modules_behind(found: Any, name: str, module: str = "") -> tuple[str, ...]:
    """Return the modules whose code decides what a component is: the one that names it, and that of the object.

    ``module``: of an entry point or of what a decorator registered; else ``name`` says it, ``python:module:name``.
    """
    named = module or (name.removeprefix(PREFIX).partition(":")[0] if is_own(name) else "")
    modules = tuple(dict.fromkeys(each for each in (named, module_of(found)) if each))
    stand_behind(name, modules)
    return modules
