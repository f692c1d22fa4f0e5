"""The plan: one YAML file that says everything about an audit.

``load_plan`` is the way in; it raises ``PlanProblems`` with one line per problem. Every default is that of the embedded
default audit, ``orchestrator/plans/apollo-fashion14.yaml`` (a test holds the two together).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import yaml
from pydantic import Field, PrivateAttr, ValidationError

from audits.training.recipe import Recipe
from orchestrator.overrides import apply_overrides, parse_override
from orchestrator.plan_errors import PlanProblems, problems_of
from orchestrator.plan_files import DEFAULT_PLAN, read_plan, shipped_plan
from orchestrator.plan_sections import Audit, Compute, Data, Model, Section, Tracking, UnlearningMethod
from orchestrator.plan_split import Split

# Where and how fast a plan runs, but not its scores.
NOT_DECIDING = {"compute": {"workers", "gpus_per_worker", "address", "store"}, "data": {"root"}}


def default_unlearning() -> tuple[UnlearningMethod, ...]:
    """Return the methods of the embedded default, with the settings that were tuned for it."""
    return tuple(UnlearningMethod.model_validate(entry) for entry in shipped_plan(DEFAULT_PLAN)["unlearning"])


class Plan(Section):
    """A whole plan. Made by ``load_plan`` or ``plan_from``, which also check names and combinations."""

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

    _notes: tuple[str, ...] = PrivateAttr(default=())
    _untuned: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def notes(self) -> tuple[str, ...]:
        """What loading added to the plan, one line each."""
        return self._notes

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

    def __eq__(self, other: object) -> bool:
        """Two plans are equal when they say the same; what loading noted about them does not count."""
        return isinstance(other, Plan) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.plan_hash)

    def resolved(self) -> dict[str, Any]:
        """Return the plan as plain values, defaults filled in; ``plan_from`` of it gives an equal plan."""
        return self.model_dump(mode="json", by_alias=True)

    def to_yaml(self) -> str:
        """Return the plan as the text of a plan file that loads to an equal plan."""
        return yaml.safe_dump(self.resolved(), sort_keys=False, allow_unicode=True, width=120)

    def deciding(self) -> dict[str, Any]:
        """Return what decides the scores: all but workers, address, store, the data's root and tracking."""
        return {
            name: {key: value for key, value in section.items() if key not in NOT_DECIDING[name]}
            if name in NOT_DECIDING
            else section
            for name, section in self.resolved().items()
            if name != "tracking"
        }

    @property
    def plan_hash(self) -> str:
        """32 hex digits over everything that decides the scores (``deciding``)."""
        return hashlib.sha256(json.dumps(self.deciding(), sort_keys=True).encode()).hexdigest()[:32]

    def changed(self, values: Mapping[str, Any]) -> Plan:
        """Return the plan with dotted paths set to new values, checked again; what a sweep does for each setting."""
        plan = plan_from(apply_overrides(self.resolved(), values.items()), notes=self.notes)
        plan._untuned |= self._untuned
        return plan


def load_plan(
    source: str | None = None, overrides: Iterable[str] = (), values: Mapping[str, Any] | None = None
) -> Plan:
    """Return the plan of a file, of a shipped plan's name, or the embedded default (None).

    ``overrides`` are texts such as ``split.shadows=32`` (``--set``), ``values`` dotted paths with ready values; both
    are put in before the plan is checked. Raises ``BadInput``: ``PlanProblems`` when the YAML is readable but says
    something impossible.
    """
    changes = [*map(parse_override, overrides), *(values or {}).items()]
    return plan_from(apply_overrides(read_plan(source), changes))


def plan_from(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> Plan:
    """Return the checked plan of a plain mapping; settings are completed and missing controls added (and noted)."""
    from orchestrator.components import complete
    from orchestrator.plan_checks import contradictions

    try:
        plan = Plan.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise PlanProblems(problems_of(error, Plan)) from None
    found = complete(plan)
    problems = [*found.problems, *contradictions(found.plan)]
    if problems:
        raise PlanProblems(problems)
    found.plan._notes, found.plan._untuned = notes + found.notes, found.untuned
    return found.plan
