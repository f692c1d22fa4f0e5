"""Components registered by a decorator in a notebook: in this process, with keys, and not on workers."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from audits.errors import BadInput
from audits.models import MODELS
from orchestrator.engine.plan.base import BasePlan
from orchestrator.kinds import check_against_data, open_design
from tests.cases.own_components import own_plan
from tests.cases.runs import audited

CELL = '''
import torch
from torch import nn
from audits.models import MODELS
WIDTH = 12
def hidden(x):
    return torch.relu(x)
@MODELS.register("mine")
class Mine(nn.Module):
    """A network of a notebook."""
    def __init__(self, classes):
        super().__init__()
        self.first, self.head = nn.Linear(64, WIDTH), nn.Linear(WIDTH, classes)
    def forward(self, x):
        return self.head(hidden(self.first(x.flatten(1))))
'''


@pytest.fixture
def run_cell(folder: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]  # a function
    """Run a cell of a notebook: its names are those of ``__main__``, its source can be read."""
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(MODELS, "_registered", {})

    def run(text: str) -> None:
        file = folder / f"cell_{len(list(folder.iterdir()))}.py"
        file.write_text(text)
        main.__file__ = str(file)
        exec(compile(text, str(file), "exec"), vars(main))

    return run


def plan(store: Path, **more: object) -> BasePlan:
    few = {"audit.attacks": ["loss_threshold"], "unlearning": [{"method": "python:forgetting:forget"}]}
    return own_plan(store, model={"name": "mine", "settings": {}}, **few, **more)


def key(found: BasePlan) -> str:
    return str(next(job.key for job in open_design(found).jobs() if job.stage == "train"))


def test_a_network_of_a_notebook_is_audited_in_its_process(run_cell, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    run_cell(CELL)
    found = plan(tmp_path / "store")
    check_against_data(found)
    assert audited(found, tmp_path / "out").scores.num_rows > 0
    first = key(found)
    for edited, same in (
        (CELL.replace("A network", "The network").replace("WIDTH = 12", "WIDTH = 12  # units"), True),
        (CELL.replace("torch.relu", "torch.tanh"), False),
        (CELL.replace("WIDTH = 12", "WIDTH = 13"), False),
    ):
        run_cell(edited)
        assert (key(plan(tmp_path / "store")) == first) == same
    monkeypatch.delattr("orchestrator.engine.run.crew.connect")  # refused before a cluster is started
    with pytest.raises(BadInput, match=r"Mine is code of a notebook .* set compute\.workers to 0"):
        audited(plan(tmp_path / "other", **{"compute.workers": 1}), tmp_path / "out1")


def test_what_no_key_can_tell_is_refused(run_cell, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run_cell(CELL.replace("WIDTH = 12", "WIDTH = torch.tensor(12)"))
    with pytest.raises(BadInput, match="WIDTH is Tensor, a value of the notebook that no key can tell"):
        key(plan(tmp_path))
    with pytest.raises(RuntimeError, match="model 'mlp' is registered twice"):
        run_cell(CELL.replace('"mine"', '"mlp"'))
