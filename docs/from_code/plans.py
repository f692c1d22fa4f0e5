"""A page for the plan of each kind of audit: every field with its type, default, allowed values and meaning."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from audits.training.recipe import Recipe
from docs.from_code.docstrings import fields_of, introduction
from docs.from_code.text import code, doc_of, page, prose, summary, table, value
from docs.from_code.types import unpacked, words
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.engine.plan.base import BasePlan
from orchestrator.gnq.given.plan import GivenPlan
from orchestrator.gnq.plan import GnqPlan
from orchestrator.kinds import KINDS, OF_TARGETS, kind_named
from orchestrator.mia.plan import MiaPlan
from orchestrator.tmia.plan import TmiaPlan

FOLDER = "reference/plans"
PLANS: dict[str, type[BasePlan]] = {
    "apollo": ApolloPlan,
    "tmia": TmiaPlan,
    "gnq": GnqPlan,
    "mia": MiaPlan,
    "gnq-target": GivenPlan,
}
NAMED_BY = {
    "data.name": "[data sets](../data.md)",
    "data.root": "[where data sets are looked for](../data.md)",
    "model.name": "[architectures](../models.md)",
    "model.settings": "[settings of architectures](../models.md)",
    "audit.attacks": "[attacks](../attacks/index.md)",
    "audit.selectors": "[selectors](../selectors.md)",
    "unlearning[].method": "[unlearning methods](../unlearners/index.md)",
    "defences[].ranking": "[rankings](../rankings.md)",
}
"""Fields that name something → where that is listed; those of ``shadow_model`` and ``transfer.data`` are found, too."""


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a plan: its path, its type, and its default (``MISSING`` where it must be given)."""

    path: str
    kind: Any
    metadata: tuple[Any, ...]
    default: Any
    text: str

    @property
    def inside(self) -> type | None:
        """The section that the field holds, alone, as one of several types, or in a list."""
        return section_in(self.kind)

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The field as a row of a table."""
        text = prose(self.text) if self.text else ""
        if link := NAMED_BY.get(self.path.replace("shadow_model.", "model.").replace("transfer.data.", "data.")):
            text = f"{text} → {link}".strip()
        return code(self.path), words(self.kind, self.metadata), shown(self.default), text


def pages() -> dict[str, str]:
    """Return the pages by their place in the documentation."""
    return {f"{FOLDER}/index.md": overview()} | {f"{FOLDER}/{name}.md": plan_page(name) for name in PLANS}


def overview() -> str:
    """Return the page that lists the kinds of plans."""
    rows = [
        (f"[{name}]({name}.md)", code(kind_named(name).default_plan), prose(kind_named(name).question))
        for name in KINDS
    ]
    return page(
        "Plans",
        "A plan is one YAML file. Fields that are left out have the default; a field that does not exist, a value of "
        "another type and a combination that cannot work are refused with the field's path, what is allowed and what "
        "to do. `orch validate PLAN` lists everything that is wrong with a plan, `orch cp NAME FILE` copies a "
        "[shipped one](../shipped-plans.md), and `--set a.b=c` changes a value on the command line.",
        table(("plan", "without a plan", "question"), rows),
    )


def plan_page(name: str) -> str:
    """Return the page of one kind of plan."""
    of_targets = {given: kind for kind, given in OF_TARGETS.items()}
    audit = f"`audit.kind: {of_targets.get(name, name)}`" + (" with a section `target`" if name in of_targets else "")
    blocks = [block for cls, path, fields in sections(PLANS[name]) for block in described(cls, path, fields)]
    return page(f"Plan: {name}", f"{prose(kind_named(name).question)} A plan with {audit}.", *blocks)


def described(kind: type, path: str, fields: list[Field]) -> Iterator[str]:
    """Yield heading, introduction and table of one section."""
    yield f"## {code(path)}" if path else "## The plan itself"
    yield prose(introduction(doc_of(kind)))
    yield table(("field", "value", "default", ""), [field.row for field in fields])


def sections(kind: type, path: str = "", default: Any = None) -> Iterator[tuple[type, str, list[Field]]]:
    """Yield a section and all sections inside it: class, path, fields."""
    fields = fields_in(kind, path, default)
    yield kind, path, fields
    for field in fields:
        if field.inside is not None:
            many = get_origin(field.kind) is tuple
            given = field.default if type(field.default) is field.inside else None
            yield from sections(field.inside, f"{field.path}[]" if many else field.path, given)


def fields_in(kind: type, path: str, given: Any) -> list[Field]:
    """Return the fields of a section; ``given`` is an object that holds its defaults, or None."""
    texts = fields_of(kind)
    found = []
    for name, annotation, metadata, default in declared(kind):
        own = getattr(given, name) if given is not None else default
        inside = section_in(annotation)
        text = texts.get(name, "") or (summary(introduction(doc_of(inside))) if inside else "")
        name = "as" if name == "given_label" else name  # the alias that plans write
        found.append(Field(f"{path}.{name}" if path else name, annotation, metadata, own, text))
    return found


def declared(kind: type) -> Iterator[tuple[str, Any, tuple[Any, ...], Any]]:
    """Yield name, type, bounds and default of the fields of a pydantic model or of a dataclass."""
    if issubclass(kind, BaseModel):
        for name, info in kind.model_fields.items():
            default = info.get_default(call_default_factory=True)
            yield name, info.annotation, tuple(unpacked(info.metadata)), default
        return
    hints = get_type_hints(kind, include_extras=True)
    assert dataclasses.is_dataclass(kind), kind
    for field in dataclasses.fields(kind):
        yield field.name, hints[field.name], (), default_of(field)


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a dataclass's field, ``PydanticUndefined`` where it has none."""
    if field.default is not dataclasses.MISSING:
        return field.default
    return PydanticUndefined if field.default_factory is dataclasses.MISSING else field.default_factory()


def section_in(annotation: Any) -> type | None:
    """Return the section that a type holds; None for plain values."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or annotation is Recipe):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple):
        return next((found for one in get_args(annotation) if (found := section_in(one))), None)
    return None


def shown(default: Any) -> str:
    """Return a default as a plan writes it; of a section nothing, since its fields have their own."""
    if default is PydanticUndefined:
        return "must be given"
    if section_in(type(default)):
        return ""
    if isinstance(default, tuple) and default and section_in(type(default[0])):
        return f"{len(default)} entries"
    if isinstance(default, dict) and not default:
        return "`{}`"
    return value(default)
