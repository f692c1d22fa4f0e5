"""What an audit refuses of users' own code, other commands refuse in the same line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cases.own_components import own_values
from tests.cases.refusals import Refused, refused_by, rows, sets, without_work
from tests.orchestrator.own import test_own_methods, test_own_models, test_own_training

MIXING = (
    "import torch\ndef net(classes):\n    return torch.nn.Sequential(torch.nn.Flatten(), "
    "torch.nn.BatchNorm1d(64, track_running_stats=False), torch.nn.Linear(64, classes))\n"
)
"""A network whose points mix."""


def own(said: str, **values: Any) -> Refused:
    """Return the smallest plan with components of one's own, changed so that it is refused."""
    return Refused("apollo", "apollo-smoke", sets(own_values(Path("store"), **values)), said)


MODELS = [
    own(says, model={"name": name, "settings": settings})
    for name, settings, says in rows(test_own_models.test_what_cannot_be_audited_is_refused_in_a_line)
]
REFUSED = [
    *MODELS,
    *(
        Refused(kind, f"{kind}-smoke", sets({"audit.attacks": [known, "python:classes:Missing"]}), "named 'classes'")
        for kind, known in rows(test_own_methods.test_a_plan_says_which_attack_cannot_be_used)
    ),
    own("factr is not a field", unlearning=[{"method": "python:forgetting:forget", "factr": 1.0}]),
    own("has no 'fitt'", **{"recipe.fit": "python:training:fitt"}),
    own("has no parameter `data`", **{"recipe.fit": "python:training:without"}),
    own("settings.rat is no parameter", **{"recipe.fit": "python:training:fit", "recipe.settings": {"rat": 1}}),
    Refused("gnq", "gnq-smoke", ("recipe.fit=python:training:fit",), "audits of kind gnq watch every step"),
    *(
        Refused("tmia", "tmia-smoke", sets({"variants": {}, "model": {"name": "python:mixing:net"}, **reading}), "mix")
        for reading in ({"audit.attacks": ["nasr"]}, {"audit.selectors": ["gnq"], "audit.attacks": ["yeom"]})
    ),
]


def written(folder: Path, modules: Mapping[str, str]) -> None:
    """Leave modules in a folder."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


IN_SHORT = {0, 5, len(MODELS), *range(len(MODELS) + 3, len(REFUSED) - 1)}
"""A refusal of each sort: where a name is read, tried, and of each kind of component."""


@pytest.mark.parametrize(
    "plan",
    [pytest.param(plan, marks=() if at in IN_SHORT else pytest.mark.long) for at, plan in enumerate(REFUSED)],
    ids=lambda plan: plan.said,
)
def test_commands_refuse_of_own_code_what_an_audit_refuses(
    plan: Refused, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder, {**test_own_models.WRONG, "training": test_own_training.TRAINING, "mixing": MIXING})
    without_work(monkeypatch)
    (line,) = refused_by("audit", plan, capsys)
    assert re.search(plan.said, line)
    assert {command: refused_by(command, plan, capsys)[:1] for command in plan.by} == {
        command: [line] for command in plan.by
    }
