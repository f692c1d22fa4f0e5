"""The reference has a place for everything that is registered or offered, with all that belongs there."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from mkdocs.config import load_config
from pydantic import Field

from audits.data.catalogue import CATALOGUE
from audits.models import MODELS
from audits.queries.access import Access
from audits.tmia.selectors import SELECTORS
from audits.uniqueness.rankings import RANKINGS
from audits.unlearning import UNLEARNERS
from docs.from_code import components, metrics, plans, python
from docs.from_code.docstrings import LABELS, fields_of, in_docstring, introduction, parts
from docs.from_code.hooks import expanded, folder, made
from docs.from_code.repository import written
from docs.from_code.text import prose, table
from docs.from_code.types import words
from orchestrator.cli.main import COMMANDS
from orchestrator.engine.kind import load
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.engine.plan.sections import Compute, Section
from orchestrator.kinds import KINDS, kind_named
from tune_spaces import SWEEPS

ROOT = Path(__file__).resolve().parents[2]
ALL_ATTACKS = [
    (kind.name, name, attacks[name]) for kind, attacks in components.registries("attacks") for name in attacks
]


@pytest.mark.parametrize(
    ("kind", "name", "attack"), ALL_ATTACKS, ids=[f"{kind}-{name}" for kind, name, _ in ALL_ATTACKS]
)
def test_every_attack_says_what_it_asks_how_it_scores_whose_it_is_and_when_to_leave_it(
    kind: str, name: str, attack: Any
) -> None:
    said = components.parts_of(attack)
    assert [label for label in LABELS if not said.get(label, "").strip()] == []
    assert said[""].strip()
    assert attack.access in components.ACCESS
    page = made()[f"reference/attacks/{kind}/{name}.md"]
    assert [page.count(f"\n## {components.heading(label)}\n") for label in LABELS] == [1] * len(LABELS)


def test_an_attack_without_its_parts_is_noticed() -> None:
    class Bare:
        """Guess.

        Question: Is it a member?

        Score: a coin, that is
        none.
        """

        access: ClassVar[Access] = "labels"

    found = parts(components.doc_of(Bare))
    assert found == {"": "Guess.", "Question": "Is it a member?", "Score": "a coin, that is\nnone."}
    assert [label for label in LABELS if label not in found] == ["Source", "Deviations", "Cost", "Not for"]


def test_every_registered_thing_has_its_page() -> None:
    pages = made()
    for name in UNLEARNERS:
        page = pages[f"reference/unlearners/{name}.md"]
        for field in dataclasses.fields(UNLEARNERS[name]):
            assert f"`{field.name}`" in page, (name, field.name)
        assert f"]({name}.md)" in pages["reference/unlearners/index.md"]
    for place, names in {
        "models": MODELS,
        "selectors": SELECTORS,
        "rankings": RANKINGS,
        "shipped-sweeps": SWEEPS,
        "shipped-plans": shipped_plans(),
        "data": [CATALOGUE[name].form for name in CATALOGUE],
    }.items():
        assert [name for name in names if f"`{name}`" not in pages[f"reference/{place}.md"]] == [], place


def test_every_page_has_one_place_in_the_navigation() -> None:
    nav = expanded(load_config(str(ROOT / "mkdocs.yml")).nav)

    def places(item: object) -> Iterator[str]:
        below = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        yield from [item] if isinstance(item, str) else (place for inside in below for place in places(inside))

    found, known = [*places(nav)], {*made(), *written()}
    assert len(found) == len({*found})
    assert {*found} <= known  # of the repository's own files, only pages that are read by themselves
    assert {place for place in known - {*found} if not place.startswith("repository/")} == set()


def test_the_page_of_a_part_stands_before_those_below_it() -> None:
    results = folder("results/")
    assert results[:3] == ["results/index.md", "results/apollo.md", "results/apollo-experiments.md"]
    assert results.index("results/tmia.md") < results.index("results/tmia-students.md")


def test_every_field_of_every_plan_has_a_type_a_default_and_a_meaning() -> None:
    assert set(plans.PLANS) == set(KINDS)
    for name, kind in plans.PLANS.items():
        fields = [field for _, _, inside in plans.sections(kind) for field in inside]
        assert [field.path for field in fields if not field.text] == [], name
        page = made()[f"reference/plans/{name}.md"]
        assert [field.path for field in fields if f"| `{field.path}` |" not in page] == []
        resolved = dotted(kind_default(name))
        assert {path for path in resolved if not path.startswith(("unlearning", "defences"))} <= {
            field.path for field in fields
        }


def kind_default(name: str) -> dict[str, Any]:
    """Return the resolved default plan of a kind; of a given model's, its class with a target."""
    kind = plans.PLANS[name]
    given = {"target": {"weights": "w.pt", "members": "all"}} if name == "gnq-target" else {}
    return kind.model_validate(given).resolved()


def dotted(value: Any, path: str = "") -> set[str]:
    """Return the dotted paths of all sections and fields in nested mappings."""
    if not isinstance(value, dict) or path.endswith(("settings", "variants", "sha256")):
        return set()
    here = {f"{path}.{key}" if path else key for key in value}
    return here | {
        below for key, inside in value.items() for below in dotted(inside, f"{path}.{key}" if path else str(key))
    }


def test_every_command_has_a_page_with_all_its_options() -> None:
    pages = made()
    there = {place for place in pages if place.startswith("reference/commands/")}
    assert there == {f"reference/commands/{name}.md" for name in (*COMMANDS, "index")}
    audit = pages["reference/commands/audit.md"]
    for option in ("--set", "--fail-above", "--junit", "--target", "--no-pictures"):
        assert f"`{option} " in audit or f"`{option}`" in audit, option
    assert "## orch cache why" in pages["reference/commands/cache.md"]


def test_every_public_name_has_a_place_and_a_docstring() -> None:
    offered = python.offering()
    assert {"orchestrator", "audits.apollo", "audits.statistics", "audits.unlearning", "tune_spaces"} <= set(offered)
    text = "\n".join(made().values())
    for package, (_, names) in offered.items():
        module = load(package)
        assert set(getattr(module, "__all__", ())) <= set(names)
        for name, home in names.items():
            assert getattr(module, name) is getattr(sys.modules[home], name), (package, name)
            assert f"::: {home}.{name}\n" in text, (package, name)


def test_metrics_and_fields_of_results_are_those_of_the_kinds() -> None:
    page = made()[metrics.PLACE]
    for name in KINDS:
        for metric in kind_named(name).headline.metrics:
            assert f"`{metric}`" in page
    pages = made()
    assert {f"reference/fields/{name}.md" for name in (*KINDS, "compare", "score")} <= set(pages)
    assert "| `found_fpr_off` |" in pages["reference/fields/apollo.md"]


class Example(Section):
    """An example (null: none). With two fields that it describes itself.

    ``first``: the first, and what belongs to it, ``x`` of it; ``second`` and ``third`` (even): both at once.
    """

    first: int = 1
    second: Annotated[int, Field(ge=2, le=4)] | None = None
    third: Literal["a", "b"] = "a"
    fourth: tuple[str, ...] = ()
    """Below the field."""


def test_fields_are_described_by_the_docstring_or_below_them() -> None:
    assert fields_of(Example) == {
        "first": "the first, and what belongs to it, ``x`` of it",
        "second": "both at once",
        "third": "both at once",
        "fourth": "Below the field.",
    }
    assert introduction(Example.__doc__ or "") == "An example (null: none). With two fields that it describes itself."
    assert in_docstring("Nothing here.") == {}


def test_types_are_said_in_words_with_what_they_allow() -> None:
    fields = {name: words(kind, notes) for name, kind, notes, _ in plans.declared(Example)}
    assert fields == {
        "first": "whole number",
        "second": "whole number ≥ 2, ≤ 4 or `null`",
        "third": "`a`, `b`",
        "fourth": "list of text",
    }
    compute = {name: words(kind, notes) for name, kind, notes, _ in plans.declared(Compute)}
    assert compute["workers"] == '"auto", or a whole number from 0 on'
    assert compute["checkpoint_minutes"] == "number ≥ 0 or `null`"


def test_text_is_shown_as_it_is_written() -> None:
    assert prose("p_y < 1 and a|b, ``p_y | x``, see :class:`Y`") == r"p\_y &lt; 1 and a&#124;b, ``p_y | x``, see `Y`"
    assert prose("*kept* points, K* and *") == r"*kept* points, K\* and \*"
    assert table(("a", "b"), [("1\n2", "`x`")]) == "| a | b |\n| --- | --- |\n| 1 2 | `x` |"
