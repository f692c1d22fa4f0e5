"""A two-target shadow set of tiny random networks, of which every kind of evidence can be gathered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from torch import nn

from audits.apollo.design.partition import Partition, Split, make_partition
from audits.apollo.evidence import KINDS, Case, Group, Part, Questions, SearchSettings, Walks
from audits.apollo.evidence import oslo as oslo_file
from audits.apollo.evidence import plus as plus_file
from audits.apollo.evidence import yoqo as yoqo_file
from audits.data.toy2d import make
from audits.models import make_model
from audits.queries.oracles import LabelOracle, label_oracle, logit_oracle, posterior_oracle

SPLIT = Split(
    targets=2,
    train_size=30,
    target_pool=60,
    shadow_pool=120,
    test_pool=20,
    forget=0.3,
    candidates_forget=4,
    candidates_unseen=4,
    shadows=8,
    offline_shadows=4,
    targets_per_shadow_set=2,
)
STEPS = 3
SETTINGS = SearchSettings(epsilon=0.2, steps=STEPS, learning_rate=0.1)
WALK = 1 + 2 * 2 * STEPS
BUDGET = 21
DATA = make(points=200)
CANDIDATES = 16
ASKED = {"labels", "posteriors", "logits"}
"""Of a case, what asks targets."""
LABEL_KINDS = [name for name in KINDS if KINDS[name].part.access == "labels"]


def network(seed: int) -> nn.Module:
    model = make_model("mlp", {"hidden": [6]}).build((2,), 4, seed).double().eval().requires_grad_(False)
    return model


@dataclass
class Scene:
    """A two-target shadow set with random networks in place of trained ones."""

    partition: Partition
    questions: Questions
    population: Questions
    online: tuple[Group, Group]
    offline: tuple[Group, Group]
    targets: dict[int, nn.Module]
    traces: dict[str, Mapping[str, Any]] = field(default_factory=dict, init=False)
    """What each kind has drawn from the shadows; a changed scene begins anew."""

    def case(self, name: str, **changes: object) -> Case:
        """Return the case for one kind: what it reads, what comes before it, and no more than its access."""
        kind = KINDS[name]
        roles = {*kind.reads, *kind.draws}
        case = Case(
            self.questions,
            SETTINGS,
            online=self.online if "online" in roles else None,
            offline=self.offline if "offline" in roles else None,
            population=self.population if "population" in kind.settings else None,
            budget=BUDGET,
        )
        if kind.part.access == "labels":
            case = replace(case, labels=self.label_oracles())
        case = replace(case, **changes)
        if kind.traced and not case.trace:
            case = replace(case, trace=self.traced(name, case) if changes.keys() <= ASKED else kind().trace(case))
        return replace(case, earlier={earlier: self.gather(earlier, **changes) for earlier in kind.after})

    def traced(self, name: str, case: Case) -> Mapping[str, Any]:
        """Return what a kind draws from the shadows, drawn once."""
        if name not in self.traces:
            self.traces[name] = KINDS[name]().trace(case)
        return self.traces[name]

    def gather(self, name: str, **changes: object) -> Part:
        """Return the part of one kind; labels, if any, come from fresh oracles."""
        changes = changes or {
            "posteriors": {index: posterior_oracle(model) for index, model in self.targets.items()},
            "logits": {index: logit_oracle(model) for index, model in self.targets.items()},
        }
        return KINDS[name]().gather(self.case(name, **changes))

    def walks(self, name: str, **changes: object) -> Walks:
        """Return the walks of one kind."""
        found = self.gather(name, **changes)
        assert isinstance(found, Walks)
        return found

    def label_oracles(self, budget: int | None = None) -> dict[int, LabelOracle]:
        """Return fresh label oracles."""
        return {index: label_oracle(model, budget) for index, model in self.targets.items()}


def networks(count: int, seed: int) -> list[nn.Module]:
    return [network(seed + i) for i in range(count)]


def make_scene() -> Scene:
    """Return the scene: each half has online and offline shadows of its own, and two targets are asked about."""
    partition = make_partition(200, SPLIT, 0)
    asked = partition.candidates[0]

    def questions(ids: np.ndarray, owner: np.ndarray) -> Questions:
        rows = DATA.tensors(ids)
        return Questions(rows.x.double(), rows.y, ids, owner, (2,), None, seed=5, chunk=9)

    online, offline = [], []
    for group in (1, 2):
        members = partition.select("shadow", 0, group)
        inside = partition.membership(members, asked.ids)
        count = len(members)
        online.append(Group(networks(count, 100 * group), networks(count, 100 * group + 50), inside, ~inside))
        never = np.zeros((2, len(asked.ids)), dtype=bool)
        offline.append(Group(networks(2, 300 * group), networks(2, 300 * group + 50), never, ~never))
    rest = np.setdiff1d(np.arange(200), asked.ids)[:60]
    return Scene(
        partition,
        questions(asked.ids, asked.target),
        questions(rest, np.zeros(len(rest), dtype=np.int64)),
        (online[0], online[1]),
        (offline[0], offline[1]),
        {0: network(1), 1: network(2)},
    )


def shorten_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches take a few steps: no fact of these tests depends on how far a search gets."""
    monkeypatch.setattr(yoqo_file, "STEPS", 2)
    monkeypatch.setattr(oslo_file, "LEVELS", 2)
    monkeypatch.setattr(plus_file, "NEWTON_STEPS", 2)
