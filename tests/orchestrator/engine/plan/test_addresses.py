"""Each field of a plan that may hold an address is annotated, and what a plan reaches is read from the annotations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from orchestrator.engine.kind import load
from orchestrator.engine.plan.addresses import Address, addresses_of, reached, sections_in
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.engine.plan.overrides import apply_overrides
from orchestrator.engine.plan.reaches import changes_of, reaches
from orchestrator.engine.plan.sweep_files import sweep_named, varied
from orchestrator.kinds import KINDS, load_plan

PLANS = {
    "apollo": "orchestrator.apollo.plan:ApolloPlan",
    "tmia": "orchestrator.tmia.plan:TmiaPlan",
    "gnq": "orchestrator.gnq.plan:GnqPlan",
    "mia": "orchestrator.mia.plan:MiaPlan",
    "gnq-target": "orchestrator.gnq.given.plan:GivenPlan",
}
NO_ADDRESSES = {
    "files and folders of this machine": """
        data.root data.groups transfer.data.root transfer.data.groups transfer.teacher target.members
        target.non_members target.forget target.original target.sha256 target.served.ca_file
    """,
    "weights in files alone": "gnq-target:target.weights",
    "words and names of components": """
        audit.attacks audit.judge audit.modes audit.selectors audit.gradient_inversion.methods compute.device
        compute.gpu defences.ranking tracking.experiment unlearning.as unlearning.method model.name shadow_model.name
        recipe.fit shadow_recipe.fit transfer.recipe.fit
        defences.recipe.fit
    """,
    "settings of components, which open nothing": """
        model.settings shadow_model.settings recipe.settings shadow_recipe.settings transfer.recipe.settings
        defences.recipe.settings
    """,
    "classes and ids": "split.classes split.forget.classes split.forget.ids split.forget.comments transfer.classes",
    "forms of requests and answers": """
        target.served.answers target.served.class_names target.served.columns target.served.identity
        target.served.item target.served.template target.served.token_header
    """,
    "names of variables, which the address beside them looks at": "target.served.token_env",
    "changes of other fields, made before addresses are looked for": "variants",
}
"""Texts of plans that are never opened as addresses; a new field must be annotated, or stand here."""


def texts_in(kind: Any, prefix: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the dotted path of each field that can hold free text, and whether it is annotated as an address."""
    for name, annotation, metadata in fields_of(kind):
        path = f"{prefix}{name}"
        if sections := list(parts_in(annotation)):
            for section in sections:
                yield from texts_in(section, f"{path}.")
        elif has_text(annotation):
            yield path, any(isinstance(mark, Address) for mark in metadata)


def fields_of(kind: Any) -> Iterator[tuple[str, Any, Any]]:
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        yield from ((field.name, hints[field.name], ()) for field in dataclasses.fields(kind))
    else:
        yield from ((info.alias or name, info.annotation, info.metadata) for name, info in kind.model_fields.items())


def parts_in(annotation: Any) -> Iterator[Any]:
    """Yield the sections in an annotation, dataclasses as well."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)):
        yield annotation
    for inner in get_args(annotation):
        yield from parts_in(inner)


def has_text(annotation: Any) -> bool:
    """Say whether values of an annotation may be, or hold, free text."""
    if get_origin(annotation) is Literal:
        return False
    return annotation in (str, Any) or any(map(has_text, get_args(annotation)))


def test_each_kind_of_audit_is_looked_at() -> None:
    assert set(PLANS) == set(KINDS)
    for name in shipped_plans():
        plan = load_plan(name)
        assert type(plan) is load(PLANS[plan.kind]), name


@pytest.mark.parametrize("kind", PLANS)
def test_each_text_of_a_plan_is_an_address_or_known_to_be_none(kind: str) -> None:
    none = {word for words in NO_ADDRESSES.values() for word in words.split()}
    forgotten = [
        path
        for path, annotated in texts_in(load(PLANS[kind]))
        if not annotated and path not in none and f"{kind}:{path}" not in none
    ]
    assert not forgotten, "annotate them with Address, or say in NO_ADDRESSES why they lead nowhere"


@pytest.mark.parametrize("kind", PLANS)
def test_each_annotated_field_is_reached(kind: str) -> None:
    found = load(PLANS[kind])
    paths = [path for path, annotated in texts_in(found) if annotated]
    assert {"data.name", "compute.store", "compute.address", "tracking.uri"} <= set(paths)
    assert set(paths) <= set(addresses_of(found))
    for path in paths:
        address = "host:1" if path == "compute.address" else "http://host:1/x"
        assert [(one.field, one.place) for one in reached(found, apply_overrides({}, [(path, address)]))] == [
            (path, "host:1")
        ]


@pytest.mark.parametrize("name", shipped_plans())
def test_shipped_plans_reach_nothing(name: str) -> None:
    assert reaches(load_plan(name)) == ()


def plan_with(name: str, **changes: Any) -> BasePlan:
    return load_plan(name, values={path.replace("__", "."): value for path, value in changes.items()})


def test_a_plan_reaches_what_its_fields_and_variants_name() -> None:
    plan = plan_with(
        "tmia-smoke",
        tracking__uri="http://tracker:5000",
        compute__address="10.0.0.1:6379",
        transfer__data={"name": "parquet:s3://theirs/x"},
        variants={"other": {"transfer.data.name": "parquet:s3://others/x", "audit.mode": "II"}},
    )
    assert [one.permission for one in reaches(plan)] == [
        "s3://theirs",
        "ray-token@10.0.0.1:6379",
        "mlflow-login@tracker:5000",
        "s3://others",
    ]
    assert reaches(plan_with("mia-smoke", compute__address="auto")) == (), "the cluster of this machine's own settings"


def test_a_token_goes_with_its_address() -> None:
    served = {"gives": "probabilities", "token_env": "TOKEN"}
    target = {"weights": "https://host/x", "members": "even", "served": served}
    (found,) = reached(load(PLANS["mia"]), {"target": target})
    assert (found.field, found.place, found.credential) == ("target.weights", "host", "TOKEN")
    assert "host" in str(found) and "TOKEN" in str(found)


def test_settings_of_a_sweep_are_looked_at_in_all_combinations(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "base: mia-smoke\nsearch: optuna\nsamples: 3\nmetric: loss.auc\nspace:\n"
        "  recipe.learning_rate: {uniform: [0.1, 0.2]}\n"
        "  target.weights: {choice: ['https://one/x', 'https://two/x', 'https://three/x']}\n"
        "  target.served.token_env: {choice: [A, B, C]}\n"
    )
    plan = load_plan("mia-smoke")
    searched = reaches(plan, changes_of(sweep_named(str(file)), plan))
    assert {one.permission for one in searched} == {
        f"{name}@{host}" for name in "ABC" for host in ("one", "two", "three")
    }
    listed = reaches(plan, changes_of(varied(["data.name=digits,parquet:s3://theirs/x"], "mia-smoke", {}), plan))
    assert [one.permission for one in listed] == ["s3://theirs"]


def test_sections_are_found_within_annotations() -> None:
    assert list(sections_in(tuple[Address, ...] | None)) == [] and list(sections_in(BasePlan | None)) == [BasePlan]
