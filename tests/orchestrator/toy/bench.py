"""Where tests of the toy kind run its plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.cli.main import main
from orchestrator.engine.store.store import Store
from orchestrator.judgement.rows import FINDINGS, Control, Protects, State
from orchestrator.kinds import kind_named, load_plan
from tests.orchestrator.toy import kind
from tests.orchestrator.toy.plan import ToyPlan


@dataclass(frozen=True)
class Bench:
    """A store and a tracker in which the tests run plans, each into a folder of its own."""

    place: Path

    @property
    def tracker(self) -> str:
        return f"sqlite:///{self.place / 'mlflow.db'}"

    def plan(self, **changes: Any) -> ToyPlan:
        values = {"compute.workers": 0, "compute.store": str(self.place / "store"), "tracking.uri": self.tracker}
        changed = {name.replace("__", "."): value for name, value in changes.items()}
        plan = load_plan(kind_named("toy").default_plan, values=values | changed)
        assert isinstance(plan, ToyPlan)
        return plan

    def made(self) -> Counter[str]:
        present = kind_named("toy").present(Store(str(self.place / "store")))
        return Counter({stage: len(keys) for stage, keys in present.items()})

    def command(self, *arguments: str) -> int:
        """Return the exit code of a command of ``orch`` on the plan, in the store, without workers."""
        file = self.place / "plan.yaml"
        file.write_text(yaml.safe_dump(self.plan().resolved()))
        return main([*arguments[:2], str(file), *arguments[2:]])


def control(name: str, state: State, why: str = "", protects: Protects = FINDINGS, **more: Any) -> Control:
    """Return a control of a toy result's one setting."""
    return Control(name=name, protects=protects, state=state, setting="base", why=why, **more)


def controlled(monkeypatch: pytest.MonkeyPatch, *controls: Control) -> None:
    """Give every toy result these controls."""
    summarise = kind.KIND.summarise
    found = {"controls": [each.write() for each in controls]}
    monkeypatch.setattr(kind, "KIND", replace(kind.KIND, summarise=lambda finished: {**summarise(finished), **found}))
