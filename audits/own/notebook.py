"""Source of an object of a notebook or script (``__main__``), with all that it uses there."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from audits.errors import BadInput


def text_in_main(found: Any, names: Mapping[str, Any]) -> str:
    """Return the source of ``found`` and of the functions, classes, plain values and imports that it uses of ``names``.

    ``names`` are those of ``__main__``. Raises BadInput for an object without a source (typed at a prompt that keeps
    none), and for one that uses a value that no key can tell, such as an array.
    """
    waiting, done, parts = [found], set[int](), []
    while waiting:
        part = waiting.pop()
        if id(part) in done:
            continue
        done.add(id(part))
        text = source_of(part)
        parts.append(text)
        for name in sorted(used(text) & names.keys()):
            value = names[name]
            if isinstance(value, ModuleType):
                parts.append(f"import {value.__name__} as {name}")
            elif getattr(value, "__module__", None) == "__main__" and (isinstance(value, type) or callable(value)):
                waiting.append(value)
            elif isinstance(value, type) or callable(value):
                parts.append(f"from {value.__module__} import {getattr(value, '__name__', name)} as {name}")
            else:
                parts.append(f"{name} = {plain(name, value)}")
    return "\n".join(sorted(parts))


def source_of(part: Any) -> str:
    """Return the source of one object, without the decorator that registers it."""
    try:
        return without_registration(textwrap.dedent(inspect.getsource(part)))
    except (OSError, TypeError):
        name = getattr(part, "__name__", type(part).__name__)
        raise BadInput(f"{name} has no source that can be read, for its key; put it into a module") from None


def without_registration(text: str) -> str:
    """Return the source of a function or class without decorators of the form ``TABLE.register(name)``."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = [each for each in node.decorator_list if ".register(" not in ast.unparse(each)]
    return ast.unparse(tree)


def used(text: str) -> set[str]:
    """Return the names that a piece of source reads."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def plain(name: str, value: Any) -> str:
    """Return a plain value as text; raises BadInput for others."""
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError):
        raise BadInput(
            f"{name} is {type(value).__name__}, a value of the notebook that no key can tell; make it inside the "
            "code that uses it, or put it into a module"
        ) from None
