"""The base of every plan, whatever it audits: strict sections, a resolved form, a hash of what decides the scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import yaml
from pydantic import PrivateAttr, ValidationError

from audits.credentials import mask, without_mask
from audits.errors import BadInput
from orchestrator.engine.plan.errors import PlanProblems, problems_of
from orchestrator.engine.plan.overrides import apply_overrides
from orchestrator.engine.plan.sections import Section
from orchestrator.engine.plan.served import NOT_DECIDING as OF_ASKING

if TYPE_CHECKING:
    from audits.training.recipe import Recipe
    from orchestrator.engine.plan.sections import Compute, Data, Model, Tracking

# Where and how fast a plan runs, but not its scores.
NOT_DECIDING = {
    "compute": {
        "workers",
        "gpu",
        "gpus_per_worker",
        "cpus_per_worker",
        "engine",
        "head",
        "address",
        "store",
        "checkpoint_minutes",
        "record_steps",
    },
    "data": {"root"},
}


def require_deciding(path: str) -> None:
    """Raise BadInput for a dotted field that no score depends on: settings of a sweep cannot differ in it."""
    section, _, rest = path.partition(".")
    if section == "tracking" or rest.partition(".")[0] in NOT_DECIDING.get(section, ()):
        raise BadInput(
            f"{path} changes no result, so settings cannot differ in it; set it for all of them: --set {path}=…"
        )
    if path == "compute":
        raise BadInput("compute is varied as a whole; vary single fields of it that change results, e.g. compute.chunk")


@dataclass(frozen=True)
class Rules:
    """The rules of a kind: ``check(raw, notes)`` makes a checked plan, ``weaknesses(plan)`` returns its warnings."""

    check: Callable[[Mapping[str, Any], tuple[str, ...]], BasePlan]
    weaknesses: Callable[[Any], tuple[str, ...]]


class BasePlan(Section):
    """A whole plan. Each kind of audit has its own sections, in an order of its own, and these are in all of them."""

    if TYPE_CHECKING:
        audit: Any
        data: Data
        split: Any
        model: Model
        recipe: Recipe
        compute: Compute
        tracking: Tracking
        seed: int

    _notes: tuple[str, ...] = PrivateAttr(default=())
    _rules: Rules | None = PrivateAttr(default=None)

    @property
    def kind(self) -> str:
        """The kind of audit: ``audit.kind``."""
        return str(self.audit.kind)

    @property
    def notes(self) -> tuple[str, ...]:
        """What loading added to the plan, one line each."""
        return self._notes

    @property
    def warnings(self) -> tuple[str, ...]:
        """What will weaken the result of this plan, one line each."""
        return self._rules.weaknesses(self) if self._rules else ()

    @property
    def train_size(self) -> int:
        """Points that the models asked about train on."""
        return int(self.split.train_size)

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the settings of an audit of this plan: name → dotted fields that change; most plans have one."""
        return {"base": {}}

    def __eq__(self, other: object) -> bool:
        """Two plans are equal when they say the same; what loading noted about them does not count."""
        return isinstance(other, BasePlan) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.plan_hash)

    def resolved(self) -> dict[str, Any]:
        """Return the plan as plain values, defaults filled in; ``plan_from`` of it gives an equal plan."""
        return self.model_dump(mode="json", by_alias=True)

    def to_yaml(self) -> str:
        """Return the plan as the text of a plan file that loads to an equal plan."""
        return yaml.safe_dump(self.resolved(), sort_keys=False, allow_unicode=True, width=120)

    def deciding(self) -> dict[str, Any]:
        """Return what decides the scores: all but where and how fast it works, and tracking."""
        found = {
            name: {key: value for key, value in section.items() if key not in NOT_DECIDING[name]}
            if name in NOT_DECIDING
            else section
            for name, section in self.resolved().items()
            if name != "tracking"
        }
        if found["compute"]["workers_per_model"] == 1:  # plans from before there were several count as they did
            del found["compute"]["workers_per_model"], found["compute"]["sync_batch_norm"]
        target = found.get("target") or {}
        if served := target.get("served"):
            told = {key: value for key, value in served.items() if key not in OF_ASKING}
            found["target"] = {**target, "weights": served["identity"] or target["weights"], "served": told}
        return found

    @property
    def plan_hash(self) -> str:
        """32 hex digits over everything that decides the scores (``deciding``), credentials left out."""
        return hashlib.sha256(without_mask(json.dumps(self.deciding(), sort_keys=True)).encode()).hexdigest()[:32]

    def changed(self, values: Mapping[str, Any]) -> Self:
        """Return the plan with dotted paths set to new values, checked again; what a sweep does for each setting."""
        return self.like(apply_overrides(self.resolved(), values.items()), self._notes)

    def like(self, raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> Self:
        """Return the plan of a plain mapping, checked by the rules of this one; raises ``PlanProblems``."""
        if self._rules is None:
            raise RuntimeError("only a checked plan has rules; make it with load_plan")
        return self._rules.check(raw, notes)  # type: ignore[return-value]  # the rules of a kind keep its class

    def made_by(self, rules: Rules, notes: tuple[str, ...]) -> Self:
        """Return the plan itself, which now knows the rules that it was checked by, and what loading added to it."""
        self._rules, self._notes = rules, notes
        return self


P = TypeVar("P", bound=BasePlan)


def validated(kind: type[P], raw: Mapping[str, Any]) -> P:
    """Return ``raw`` as a plan of ``kind``, credentials masked; raises ``PlanProblems`` with one line a problem."""
    try:
        return kind.model_validate_json(json.dumps(mask(raw)))
    except ValidationError as error:
        raise PlanProblems(problems_of(error, kind)) from None
