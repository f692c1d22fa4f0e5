"""Which source files decide a stage, and their hash: changed code changes keys, changed comments do not."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BASE = ("audits/models/registry.py", "audits/data/tensors.py", "audits/seeds.py")
_TRAIN = ("audits/training/**/*.py", *_BASE, "orchestrator/stages/models.py", "orchestrator/stages/workshop.py")
_ASKING = ("audits/evidence/base.py", *_BASE, "orchestrator/stages/searching.py", "orchestrator/stages/workshop.py")
_LAYOUT = ("audits/data/membership.py", "orchestrator/membership/stages.py", "orchestrator/stages/workshop.py")
_WATCHING = (*_TRAIN, "audits/data/pools.py", "audits/disclosure/accumulate.py", "orchestrator/disclosure/stages.py")
_JUDGING = ("audits/attacks/base.py", "audits/attacks/heat.py")

SOURCES: dict[str, tuple[str, ...]] = {
    "train": _TRAIN,
    "unlearn": (*_TRAIN, "audits/unlearning/base.py"),
    "utility": _TRAIN,
    "rank": ("audits/training/**/*.py", *_BASE, "orchestrator/stages/ranking.py", "orchestrator/stages/workshop.py"),
    "trace": _ASKING,
    "search": _ASKING,
    "score": (*_JUDGING, "orchestrator/stages/scoring.py", "orchestrator/score_table.py"),
    "radii": (
        "audits/evaluation/radii.py",
        *_BASE,
        "orchestrator/stages/radii.py",
        "orchestrator/stages/workshop.py",
    ),
    "disclosure": (
        "audits/disclosure/rankings.py",
        "audits/disclosure/watching.py",
        *_BASE,
        "orchestrator/stages/disclosure.py",
        "orchestrator/stages/workshop.py",
    ),
    "fit": (*_TRAIN, *_LAYOUT, "audits/models/layers.py"),
    "select": (*_BASE, *_LAYOUT, "audits/membership/features.py", "orchestrator/membership/selecting.py"),
    "ask": (*_BASE, *_LAYOUT, "audits/membership/hop_skip_jump.py", "audits/membership/simple.py"),
    "judge": (
        "audits/membership/attacks.py",
        "audits/membership/cells.py",
        "audits/data/membership.py",
        "orchestrator/membership/judging.py",
    ),
    "watch": _WATCHING,
    "look": (
        *_BASE,
        "audits/disclosure/accumulate.py",
        "orchestrator/disclosure/stages.py",
        "orchestrator/stages/workshop.py",
    ),
    "defend": (*_WATCHING, "audits/disclosure/rankings.py", "orchestrator/disclosure/defending.py"),
    "invert": (
        *_BASE,
        "audits/disclosure/inversion.py",
        "audits/disclosure/rankings.py",
        "orchestrator/disclosure/inverting.py",
        "orchestrator/disclosure/stages.py",
        "orchestrator/stages/workshop.py",
    ),
    "assess": (
        *_BASE,
        "audits/disclosure/removal.py",
        "audits/disclosure/onion.py",
        "audits/disclosure/rankings.py",
        "audits/disclosure/triage.py",
        "orchestrator/disclosure/assessing.py",
        "orchestrator/disclosure/predicting.py",
        "orchestrator/disclosure/stages.py",
        "orchestrator/stages/workshop.py",
    ),
}
"""Stage → source files; the audits modules that these import count too, those of ``DECIDE_NOTHING`` excepted."""

DECIDE_IF_NAMED = frozenset(
    {
        "audits/training/private_fast.py",
        "audits/training/private_opacus.py",
        "audits/membership/candidate_uniqueness.py",
    }
)
"""Engines of private training, and what the selector gnq reads: they, and what they import, count for plans that use
them (``components``)."""

DECIDE_NOTHING = frozenset(
    {"audits/errors.py", "audits/registry.py"}
    | {f"audits/{package}/__init__.py" for package in ("attacks", "evidence", "models", "unlearning")}
)
"""Modules that only find names and word messages, or list all components of a kind."""


@functools.cache
def code_version(stage: str, components: tuple[str, ...] = (), root: Path | None = None) -> str:
    """Return the hash (16 hex characters) of the code that decides ``stage``; worked out once per process.

    ``components`` are the modules of the architectures, method, kind or attacks that take part (``audits.models.mlp``):
    code of the others does not count, so a new attack leaves old scores valid. Comments, formatting and docstrings do
    not count either. ``root``: the folder that holds ``audits`` (default: the installed one). Raises ValueError for an
    unknown stage, RuntimeError when a pattern of ``SOURCES`` or a component finds no file.
    """
    tree = hashlib.sha256()
    for name in code_files(stage, root, components):
        tree.update(f"{name}\n{code_of(place_of(name, root).read_text('utf-8'))}\n".encode())
    return tree.hexdigest()[:16]


def source_root(package: str = "audits") -> Path:
    """Return the folder that holds ``package``; on a cluster's worker each package may lie in a folder of its own."""
    import importlib

    return Path(str(importlib.import_module(package).__file__)).resolve().parent.parent


def place_of(name: str, root: Path | None = None) -> Path:
    """Return where the file ``name`` (``audits/seeds.py``) lies, below ``root`` or where its package is installed."""
    return (root or source_root(name.split("/")[0])) / name


def code_files(stage: str, root: Path | None = None, components: tuple[str, ...] = ()) -> list[str]:
    """Return the names of the files that decide ``stage``, imported audits modules included, sorted."""
    if stage not in SOURCES:
        raise ValueError(f"no stage {stage!r}; stages: {', '.join(SOURCES)}")
    waiting: list[str] = []
    for pattern in (*SOURCES[stage], *(f"{name.replace('.', '/')}.py" for name in components)):
        base = root or source_root(pattern.split("/")[0])
        found = sorted(path.relative_to(base).as_posix() for path in base.glob(pattern))
        if not found:
            raise RuntimeError(f"stage {stage!r}: no source file matches {base / pattern}")
        waiting += found
    names: set[str] = set()
    left_out = DECIDE_NOTHING | (DECIDE_IF_NAMED - {f"{name.replace('.', '/')}.py" for name in components})
    while waiting:
        name = waiting.pop()
        if name not in names and name not in left_out:
            names.add(name)
            waiting += _imported(name, root)
    return sorted(names)


def _imported(name: str, root: Path | None) -> Iterator[str]:
    for node in _walk(ast.parse(place_of(name, root).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = name.split("/")[: -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            modules = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            if module.split(".")[0] == "audits":
                path = module.replace(".", "/")
                yield from (file for file in (f"{path}.py", f"{path}/__init__.py") if place_of(file, root).is_file())


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _walk(child)


def code_of(source: str) -> str:
    """Return the syntax tree of ``source`` as text, without positions, comments and strings that stand alone."""
    return _tree(ast.parse(source))


def _tree(node: Any) -> str:
    if isinstance(node, list):
        return f"[{','.join(_tree(item) for item in node if not _is_docstring(item))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, getattr(node, name, None)) for name in node._fields if name != "type_ignores")
    # Fields that are empty are left out: newer Pythons add such fields to old nodes.
    inside = ",".join(f"{name}={_tree(value)}" for name, value in fields if value is not None and value != [])
    return f"{type(node).__name__}({inside})"


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
