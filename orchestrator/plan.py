"""The plan: one YAML file that says everything about an audit.

``load_plan`` is the way in; it raises ``PlanProblems`` with one line per problem. Every default is that of the embedded
default audit, ``orchestrator/plans/apollo-fashion14.yaml`` (a test holds the two together).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, PrivateAttr, ValidationError

from audits.errors import did_you_mean
from audits.training.recipe import Recipe
from orchestrator.overrides import apply_overrides, parse_override
from orchestrator.plan_base import BasePlan
from orchestrator.plan_errors import PlanProblems, problems_of, shown
from orchestrator.plan_files import DEFAULT_PLAN, read_plan, shipped_plan
from orchestrator.plan_sections import Audit, Compute, Data, Model, Tracking, UnlearningMethod
from orchestrator.plan_split import Split

KINDS = ("apollo", "tmia", "gnq")


def default_unlearning() -> tuple[UnlearningMethod, ...]:
    """Return the methods of the embedded default, with the settings that were tuned for it."""
    return tuple(UnlearningMethod.model_validate(entry) for entry in shipped_plan(DEFAULT_PLAN)["unlearning"])


class Plan(BasePlan):
    """A whole plan of Apollo's audit, made by ``load_plan`` or ``plan_from``, which check names and combinations."""

    audit: Audit = Audit()
    data: Data = Data()
    split: Split = Split()
    model: Model = Model()
    recipe: Recipe = Recipe()
    shadow_model: Model | None = None
    shadow_recipe: Recipe | None = None
    unlearning: Annotated[tuple[UnlearningMethod, ...], Field(min_length=1)] = Field(default_factory=default_unlearning)
    compute: Compute = Compute()
    tracking: Tracking = Tracking()
    seed: Annotated[int, Field(ge=0)] = 0

    _untuned: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What will weaken the result of this plan, one line each."""
        from orchestrator.plan_checks import weaknesses
        from orchestrator.presets import untuned_warnings

        return (*weaknesses(self), *untuned_warnings(self, self._untuned))

    @property
    def nulls(self) -> int:
        """Never-seen candidates over all targets: what a false-positive rate is measured on."""
        return self.split.targets * self.split.candidates.unseen

    def changed(self, values: Mapping[str, Any]) -> Plan:
        """See ``BasePlan.changed``; methods stay marked as untuned."""
        plan = super().changed(values)
        plan._untuned |= self._untuned
        return plan


def load_plan(
    source: str | None = None, overrides: Iterable[str] = (), values: Mapping[str, Any] | None = None
) -> BasePlan:
    """Return the plan of a file, of a shipped plan's name, or the embedded default (None).

    ``overrides`` are texts such as ``split.shadows=32`` (``--set``), ``values`` dotted paths with ready values; both
    are put in before the plan is checked. Raises ``BadInput``: ``PlanProblems`` when the YAML is readable but says
    something impossible.
    """
    changes = [*map(parse_override, overrides), *(values or {}).items()]
    return plan_from(apply_overrides(read_plan(source), changes))


def plan_from(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> BasePlan:
    """Return the checked plan of a plain mapping, of the class that its ``audit.kind`` asks for (default: apollo)."""
    section = raw.get("audit")
    kind = section.get("kind", "apollo") if isinstance(section, Mapping) else "apollo"
    if kind in KINDS:
        from orchestrator.kinds import audit_kind

        return audit_kind(kind).plan_from(raw, notes)
    near = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
    raise PlanProblems([f"audit.kind is {shown(kind)}{near}; allowed: {', '.join(KINDS)}"])


def apollo_plan_from(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> Plan:
    """Return the checked plan of Apollo's audit; settings are completed and missing controls added (and noted)."""
    from orchestrator.components import complete
    from orchestrator.plan_checks import contradictions

    plan = validated(Plan, raw)
    found = complete(plan)
    problems = [*found.problems, *contradictions(found.plan)]
    if problems:
        raise PlanProblems(problems)
    found.plan._notes, found.plan._untuned = notes + found.notes, found.untuned
    return found.plan


P = TypeVar("P", bound=BasePlan)


def validated(kind: type[P], raw: Mapping[str, Any]) -> P:
    """Return ``raw`` as a plan of ``kind``; raises ``PlanProblems`` with one line a problem."""
    try:
        return kind.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise PlanProblems(problems_of(error, kind)) from None
