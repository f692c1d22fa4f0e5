"""Contract tests of a component by its name: what it is, and the case that it is tested on."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from audits.apollo.attacks.base import ATTACKS as APOLLO
from audits.conformance import attacks as attack_checks
from audits.conformance import data as data_checks
from audits.conformance import models as model_checks
from audits.conformance import unlearners as unlearner_checks
from audits.conformance.attacks import case_of
from audits.conformance.data import DataCase
from audits.conformance.models import ModelCase
from audits.conformance.outcome import Outcome, outcomes
from audits.conformance.unlearners import UnlearnerCase
from audits.data.catalogue import load as load_data
from audits.data.source import CATALOGUE
from audits.errors import BadInput, did_you_mean
from audits.gnq.attacks.base import POOL_ATTACKS
from audits.mia.attacks.base import MIA_ATTACKS
from audits.models import MODELS, make_model
from audits.models.base import Architecture
from audits.models.own import tried
from audits.own.code import load
from audits.own.permission import is_own
from audits.registry import Registry
from audits.tmia.attacks.base import ATTACKS as TMIA
from audits.training.fit import train_model
from audits.training.recipe import Recipe
from audits.unlearning import UNLEARNERS
from audits.unlearning.base import Unlearner
from orchestrator.engine.plan.components import completed
from orchestrator.engine.plan.errors import PlanProblems

SORTS = ("model", "data", "unlearner", "attack")
TABLES: dict[str, Registry[Any]] = {"model": MODELS, "data": CATALOGUE, "unlearner": UNLEARNERS}
ATTACKS: tuple[Registry[Any], ...] = (APOLLO, TMIA, POOL_ATTACKS, MIA_ATTACKS)
FORGET, RETAIN = 12, 36
RECIPE = Recipe(optimizer="sgd", learning_rate=0.05, epochs=2, batch_size=8)


def sort_of(name: str) -> str:
    """Return what the component ``name`` is; raises BadInput where that cannot be seen."""
    if not is_own(name):
        found = [sort for sort, table in TABLES.items() if name in table]
        found += ["attack"] if any(name in table for table in ATTACKS) else []
        if len(found) == 1:
            return found[0]
        if found:
            raise BadInput(f"{name!r} is {' and '.join(found)}; say --as")
        known = [each for table in (*TABLES.values(), *ATTACKS) for each in table]
        raise BadInput(f"no component {name!r} is known{did_you_mean(name, known)}; orch ls lists them")
    thing = load(name)
    if isinstance(thing, type):
        kinds = [base.__qualname__ for base in thing.__mro__ if base.__module__.startswith(("torch.nn", "audits."))]
        if issubclass(thing, Unlearner):
            return "unlearner"
        if issubclass(thing, Architecture) or "Module" in kinds:
            return "model"
        if "Attack" in kinds or "PoolAttack" in kinds:
            return "attack"
        raise BadInput(f"{name} is a class {thing.__name__}; say what it is with --as {', --as '.join(SORTS)}")
    named = set(inspect.signature(thing).parameters) if callable(thing) else set()
    if named & {"forget", "retain"}:
        return "unlearner"
    if named & {"shape", "input_shape", "classes", "num_classes", "n_classes"}:
        return "model"
    if callable(thing) and not named:
        return "data"
    raise BadInput(f"{name}: what it is cannot be told; say --as {', --as '.join(SORTS)}")


def checked(name: str, sort: str, data: str, settings: Mapping[str, Any]) -> list[Outcome]:
    """Return what comes of the contract tests of ``name``, which is a ``sort``; ``data``: what models get to read."""
    if sort == "data":
        return outcomes(data_checks.CHECKS, DataCase(name))
    if sort == "attack":
        return [each for attack in attacks_of(name) for each in outcomes(attack_checks.CHECKS, case_of(attack))]
    points = load_data(data)
    classes = len(points.classes)
    if sort == "model":
        architecture = made(name, sort, settings)
        tried(architecture, points.shape, classes)
        return outcomes(model_checks.CHECKS, ModelCase(architecture, points.shape, classes))
    other = make_model("mlp", {"hidden": [16]})

    def build(seed: int) -> Any:
        return other.build(points.shape, classes, seed)

    rows = range(FORGET + RETAIN)
    model = train_model(build, points.tensors(rows), RECIPE, 1)
    sets = points.tensors(rows[:FORGET]), points.tensors(rows[FORGET:])
    return outcomes(unlearner_checks.CHECKS, UnlearnerCase(made(name, sort, settings), model, *sets, RECIPE, build))


def attacks_of(name: str) -> list[type[Any]]:
    """Return the attacks called ``name``: of each audit that has one, or that of code; raises BadInput for none."""
    if not is_own(name):
        found: list[type[Any]] = [table[name] for table in ATTACKS if name in table]
        if not found:
            raise BadInput(f"no attack {name!r} is known; see orch ls attacks")
        return found
    found, problems = [], []
    for table in ATTACKS:
        try:
            found.append(table[name])
        except BadInput as error:
            problems.append(error)
    if not found:
        raise next((error for error in problems if "needed: a class derived from" not in str(error)), problems[0])
    return found


def made(name: str, sort: str, settings: Mapping[str, Any]) -> Any:
    """Return the component with ``settings``; raises ``PlanProblems`` for those that it does not have."""
    whole, problems = completed(TABLES[sort], name, settings, name, "--set")
    if problems:
        raise PlanProblems(problems)
    frozen = {field: tuple(value) if isinstance(value, list) else value for field, value in whole.items()}
    return TABLES[sort][name](**frozen)
