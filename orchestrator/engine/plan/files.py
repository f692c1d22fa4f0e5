"""Reading plan files: YAML in, a plain mapping out; every defect of the text is one line with its place."""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import yaml

from audits.credentials import hide, mask
from audits.errors import BadInput, did_you_mean
from tune_spaces import SWEEPS

DEFAULT_PLAN = "apollo-fashion14"

# YAML 1.1, which PyYAML speaks, reads 2e-3 and 1e5 as text; YAML 1.2 and everybody else read numbers.
EXPONENT_NUMBER = re.compile(r"^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$")

# YAML 1.1 reads 010 as 8 and 10:50 as 650 (base 60); YAML 1.2 and everybody else do not.
NO_NUMBER = re.compile(r"[-+]?(?:0[0-9_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")

MOST_BYTES = 2**21
"""Of the text of a plan; the ids of 100 000 points to forget take about half of it."""
MOST_VALUES = 100_000
"""Values of a plan, each counted as often as aliases (``*name``) repeat it."""
MOST_DIGITS, MOST_LEVELS = 100, 40
LONG_TEXT = 2**15
"""Characters from which on libyaml reads a text, seven times as fast as PyYAML, which words errors better."""


class PlanRules:
    """For PyYAML's safe loaders: keys given twice are refused, and texts that would become too large."""

    def get_single_data(self) -> Any:
        """Return the value of the only document; raises ``BadInput`` before anything too large is made."""
        node = self.get_single_node()  # type: ignore[attr-defined]  # of the loader
        if node is None:
            return None
        refuse_endless(node)
        return self.construct_document(node)  # type: ignore[attr-defined]  # of the loader

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping of ``node``; raises on duplicate keys and on keys that are not text."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)  # type: ignore[misc,no-any-return]  # of the loader

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of ``node``; what its type does not have (the date 2020-13-45) is refused by its place."""
        if isinstance(node, yaml.ScalarNode) and not node.style and NO_NUMBER.fullmatch(node.value):
            return node.value
        try:
            return super().construct_object(node, deep)  # type: ignore[misc]  # of the loader
        except ValueError as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"{node.value} is read as {kind}: {error}; write it in quotes if it is meant as text"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


class PlanLoader(PlanRules, yaml.SafeLoader):
    """PyYAML's safe loader that keeps the rules of plans and reads ``2e-3`` as a number."""


class LongPlanLoader(PlanRules, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one of two
    """The same on libyaml, for long texts."""


for _loader in (PlanLoader, LongPlanLoader):
    _loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT_NUMBER, list("-+0123456789"))


def refuse_endless(root: yaml.Node) -> None:
    """Raise ``BadInput`` for a text that would become too many values, a number too long, or a value within itself.

    Counts without expanding: 430 bytes of aliases of aliases stand for a billion values.
    """
    measured: dict[int, tuple[int, int]] = {}
    unfinished: set[int] = set()

    def measure(node: yaml.Node) -> tuple[int, int]:
        """Return how many values ``node`` stands for, and in how many levels."""
        if isinstance(node, yaml.ScalarNode):
            if len(node.value) > MOST_DIGITS and node.tag.rpartition(":")[2] in ("int", "float"):
                raise BadInput(f"line {node.start_mark.line + 1}: a number of {len(node.value)} characters")
            return 1, 1
        if id(node) in unfinished:
            raise RecursionError
        if id(node) not in measured:
            unfinished.add(id(node))
            parts = node.value if isinstance(node, yaml.SequenceNode) else (one for pair in node.value for one in pair)
            inside = [measure(part) for part in parts]
            values, levels = 1 + sum(count for count, _ in inside), 1 + max((level for _, level in inside), default=0)
            if levels > MOST_LEVELS:
                raise RecursionError
            measured[id(node)] = values, levels
            unfinished.remove(id(node))
        return measured[id(node)]

    values, _ = measure(root)
    if values > MOST_VALUES:
        raise BadInput(
            f"{values:.3g} values, repeated by aliases (*name) or written out; a plan has at most {MOST_VALUES}"
        )


def refuse_large(text: str) -> None:
    """Raise ``BadInput`` or RecursionError for a long text that is nested too deeply or has too many values.

    Looks at one event after the other and holds none, before libyaml makes nodes of them by recursion in C.
    """
    level = values = 0
    for event in yaml.parse(text, Loader=LongPlanLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        if level > MOST_LEVELS:
            raise RecursionError
        values += isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if values > 2 * MOST_VALUES:  # keys are no values
            raise BadInput(f"more than {MOST_VALUES} values; a plan has fewer")


def parse_yaml(text: str, source: str) -> Any:
    """Return what ``text`` says, credentials masked; ``source`` names it in the ``BadInput`` of garbled YAML."""
    try:
        if len(text) >= LONG_TEXT:
            refuse_large(text)
        value = mask(yaml.load(text, Loader=PlanLoader if len(text) < LONG_TEXT else LongPlanLoader))
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in str(error.problem):  # libyaml's own limit, where it has one
            raise too_deep(source) from None
        mark = error.problem_mark or error.context_mark
        place = f"{source}, line {mark.line + 1}, column {mark.column + 1}" if mark else source
        raise BadInput(f"{place}: not valid YAML: {flat(hide(error.problem or str(error)))}{tab_hint(error)}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{source}: not valid YAML: {flat(hide(str(error)))}") from None
    except ValueError as error:  # e.g. the date 2024-99-99
        raise BadInput(f"{source}: not valid YAML: {flat(hide(str(error)))}") from None
    except RecursionError:
        raise too_deep(source) from None
    try:
        refuse_unusable(value, source)
    except RecursionError:
        raise too_deep(source) from None
    return value


def too_deep(source: str) -> BadInput:
    """Return the error of a text that is nested without end or refers to itself."""
    return BadInput(f"{source}: nested too deeply or referring to itself; a plan has at most four levels")


def tab_hint(error: yaml.MarkedYAMLError) -> str:
    """Return what to do about a tab, the most common defect of a hand-written YAML file."""
    return "; indent with spaces, not tabs" if "'\\t'" in str(error.problem) else ""


def flat(text: str) -> str:
    """Return ``text`` on one line."""
    return " ".join(text.split())


def refuse_unusable(value: Any, source: str, path: str = "") -> None:
    """Raise ``BadInput`` for values that no plan can hold (infinities, dates, sets), naming their place."""
    here = f"{source}: {path}" if path else source
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise BadInput(f"{here}: key {key!r} is not text; fields of a plan are words")
            refuse_unusable(item, source, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            refuse_unusable(item, source, f"{path}.{index}" if path else str(index))
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"{here} is {value}; allowed: a finite number")
    elif not isinstance(value, str | int | float | bool | None):
        raise BadInput(f"{here} is a {type(value).__name__} ({value}); write it in quotes if it is meant as text")


def file_text(path: Path, what: str) -> str:
    """Return the text of the file ``path``, ``what`` in words; raises ``BadInput``."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise BadInput(f"{path}: more than {MOST_BYTES / 2**20:g} MiB, too large for {what}; check the path")
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file (byte {error.start} is not UTF-8); {what} is YAML text") from None
    except IsADirectoryError:
        raise folder_given(path, what) from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def folder_given(folder: Path, what: str) -> BadInput:
    """Return the error of a folder where a file is wanted, ``what`` in words (a plan, a sweep)."""
    word = what.removeprefix("a ")
    own = folder / f"{word}.yaml"
    near = f"the {word} of the run in it is {own}" if own.is_file() else f"give a file, or a name of orch ls {word}s"
    return BadInput(f"{folder} is a folder, not {what}; {near}")


def is_told_as_sweep(value: Any) -> bool:
    """Say whether what YAML says is a sweep rather than a plan."""
    return isinstance(value, dict) and any(field in value for field in ("base", "space", "settings"))


def read_plan_file(path: Path) -> dict[str, Any]:
    """Return the mapping that the plan file ``path`` holds; raises ``BadInput``."""
    value = parse_yaml(file_text(path, "a plan"), str(path))
    if value is None:
        raise BadInput(f"{path}: empty plan; `orch cp {DEFAULT_PLAN} FILE` writes one to edit")
    if not isinstance(value, dict):
        raise BadInput(
            f"{path}: a plan is a mapping of sections (audit:, data:, split: …), not a {type(value).__name__}"
        )
    if is_told_as_sweep(value) and "audit" not in value:
        raise sweep_given(str(path))
    return value


def sweep_given(name: str) -> BadInput:
    """Return the error of a sweep where a plan is wanted."""
    return BadInput(
        f"{name} is a sweep, not a plan; run it with: orch sweep {name}, price it with: orch cost --sweep {name}"
    )


@functools.cache
def shipped_plans() -> Mapping[str, str]:
    """Return name → YAML text of the plans that come with the package."""
    folder = resources.files("orchestrator") / "plans"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda entry: entry.name)
    return MappingProxyType({entry.name.removesuffix(".yaml"): entry.read_text(encoding="utf-8") for entry in files})


def shipped_text(name: str) -> str:
    """Return the YAML text of the shipped plan ``name``; raises ``BadInput`` when there is none."""
    plans = shipped_plans()
    if name not in plans:
        raise BadInput(f"no shipped plan {name!r}{did_you_mean(name, plans)}; shipped: {', '.join(plans)}")
    return plans[name]


def shipped_plan(name: str) -> dict[str, Any]:
    """Return the mapping of the shipped plan ``name``, to be changed; raises ``BadInput`` when there is none."""
    return copy.deepcopy(read_shipped(name))


@functools.cache
def read_shipped(name: str) -> dict[str, Any]:
    """Return what ``shipped_plan`` copies; read once, for PyYAML takes longer than all checks of the plan."""
    value = parse_yaml(shipped_text(name), name)
    if not isinstance(value, dict):
        raise BadInput(f"the shipped plan {name!r} is damaged; install the package again")
    return value


def read_plan(source: str | None) -> dict[str, Any]:
    """Return the mapping of a plan file, of a shipped plan given by name, or of the embedded default (None)."""
    name = source or DEFAULT_PLAN
    path = Path(name)
    match sort_of(name):
        case "file":
            return read_plan_file(path)
        case "plan":
            return shipped_plan(name)
        case "sweep":
            raise sweep_given(name)
        case "folder":
            raise folder_given(path, "a plan")
    plans = shipped_plans()
    near = did_you_mean(name, [*plans, *(str(file) for file in nearby_plans(path))])
    raise BadInput(f"no plan {name!r}{near}: neither a file nor a shipped plan; shipped: {', '.join(plans)}")


Sort = Literal["plan", "sweep", "file", "folder", ""]
"""What a word where a plan or a sweep is wanted may be: a shipped plan or sweep, something in the file system, nothing.

A pipe, such as a shell makes of ``<(…)``, counts as a file.
"""


def sort_of(name: str, wanted: Literal["plan", "sweep"] = "plan") -> Sort:
    """Return what ``name`` is; raises BadInput where that cannot be found out. All commands go by it.

    A shipped name stands for what is shipped: anybody may have put a file or a folder of that name into the working
    folder, which is ./NAME. ``wanted``: which of the two is meant by a name that a plan and a sweep have.
    """
    shipped: dict[Literal["plan", "sweep"], bool] = {"plan": name in shipped_plans(), "sweep": name in SWEEPS}
    if any(shipped.values()):
        return wanted if shipped[wanted] else "sweep" if wanted == "plan" else "plan"
    path = Path(name)
    try:
        if path.is_dir():
            return "folder"
        return "file" if path.exists() else ""
    except OSError as error:  # of a name that is too long, or a folder that may not be looked into
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def nearby_plans(path: Path) -> list[Path]:
    """Return the YAML files beside ``path``, for a close match."""
    try:
        return sorted(path.parent.glob("*.y*ml"))
    except OSError:
        return []
