"""What ``orch audit`` refuses, ``orch validate``, ``orch cost`` and ``orch sweep`` refuse, and in the same line."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from audits.data.catalogue import CATALOGUE
from audits.models import make_model
from orchestrator.kinds import KINDS
from tests.cases.endpoint import serving, status
from tests.cases.given_kind import KIND as GIVEN_TOY
from tests.cases.refusals import Refused, refused_by, with_work, without_work
from tests.orchestrator.cli.refused_plans import refused, write_files
from tests.orchestrator.toy.kind import KIND as TOY


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the files that refused plans name; no command in it gets to its work."""
    place = tmp_path_factory.mktemp("refused")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORCH_STORE", str(place / "store"))
        patch.setenv("ORCH_ALLOW_ADDRESSES", "127.0.0.1:9")  # what they are refused for is else
        without_work(patch)
        write_files(place)
        yield place


def named(plan: Refused) -> str:
    """Return the name of a test."""
    return f"{plan.kind}-{Path(plan.source).name}-{plan.changes}"[:80]


def family(plan: Refused) -> tuple[object, ...]:
    """Return what plans have in common that are refused by one of a few checks: where the fault lies.

    That is the reader of the data that they name, or the section of their last change.
    """
    changes = [change.partition("=")[::2] for change in plan.changes]
    data = [value.partition("?")[0].partition(":")[0] for field, value in changes if field == "data.name"]
    where = [name if name in CATALOGUE else "unknown" for name in data] or [field for field, _ in changes[-1:]]
    return plan.kind, plan.place, re.sub(r"\d", "", Path(plan.source).name), *(each.partition(".")[0] for each in where)


def compared() -> Iterator[Any]:
    """Yield every refused plan; what the short run leaves out of it is marked long.

    It has the first plan of each family, by one of the commands in turn. Programs in ONNX, each
    read in a process of its own, and served models are none of it.
    """
    seen = set[tuple[object, ...]]()
    for plan in refused():
        now: tuple[str, ...] = ()
        if family(plan) not in seen and not any(each in str(plan.changes) for each in (".onnx", "served")):
            seen.add(family(plan))
            now = (plan.by[len(seen) % len(plan.by)],) if plan.by else ()
            yield pytest.param(plan._replace(by=now), id=named(plan))
        if later := tuple(command for command in plan.by if command not in now):
            yield pytest.param(plan._replace(by=later), id=f"{named(plan)}-others", marks=pytest.mark.long)


@pytest.mark.parametrize("plan", [*compared()])
def test_commands_refuse_what_an_audit_refuses(
    plan: Refused, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder / plan.place)
    monkeypatch.setitem(KINDS, "toy", (GIVEN_TOY if plan.place == "forms" else TOY).place)
    (line,) = refused_by("audit", plan, capsys)
    assert re.search(plan.said, line)
    found = {command: refused_by(command, plan, capsys)[:1] for command in plan.by}
    assert found == {command: [line] for command in plan.by}
    assert not Path("o").exists(), "a refused run leaves no folder"


OVERLAP = ("target.members=0:80", "target.non_members=70:300")
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, so it is not refused")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (OVERLAP, "10 points in target.members as well"),
        pytest.param(("compute.device=cuda",), "torch finds no GPU", marks=NO_GPU),
        pytest.param(
            ("target.weights=words.ts", "audit.attacks=[loss]"), "takes whole numbers", marks=pytest.mark.long
        ),
    ],
)
@pytest.mark.parametrize("command", ["audit", "sweep"])
def test_a_run_that_is_refused_leaves_its_folder_as_it_was(
    command: str, changes: tuple[str, ...], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(folder / "mia")
    plan = Refused("mia", "plan.yaml", ("compute.workers=0", *changes))
    (line,) = refused_by(command, plan, capsys)
    assert said in line and not Path("o").exists()
    Path("o").mkdir()
    Path("o/notes.txt").write_text("mine")
    assert refused_by(command, plan, capsys) == [line]
    assert [(each.name, each.read_text()) for each in Path("o").iterdir()] == [("notes.txt", "mine")]
    shutil.rmtree("o")


SMALL = ("compute.workers=0", "split={pools: 2, train_size: 60, test: 60, null_models: 2}", "audit.fpr=[0.4]",
         "audit.attacks=[loss]", "audit.judge=loss")  # fmt: skip
ONLY_BY_WORK = {
    "a training that diverges shows when it is done": Refused(
        "mia", "mia-smoke", (*SMALL, "recipe.learning_rate=1e30"), "training diverged"
    ),
    "a server is not asked before the audit": Refused(
        "mia", "plan.yaml", ("compute.workers=0", "audit.attacks=[loss]", "target.served={gives: logits}"),
        "nothing is served at this path", "mia",
    ),
}  # fmt: skip
"""Why validate cannot know → a plan that it takes and an audit refuses."""


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("why", ONLY_BY_WORK)
def test_what_only_work_shows_is_refused_by_the_audit_alone(
    why: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ONLY_BY_WORK[why]
    monkeypatch.chdir(folder / plan.place)
    with_work(monkeypatch)
    net = make_model("mlp", {"hidden": [16]}).build((1, 8, 8), 10, 0).eval()
    with serving(net, faults=[status(404)]) as server:
        if "target.served={gives: logits}" in plan.changes:
            plan = plan._replace(changes=(*plan.changes, f"target.weights={server.url}"))
        assert refused_by("validate", plan, capsys) == []
        (line,) = refused_by("audit", plan, capsys)
    assert re.search(plan.said, line)
