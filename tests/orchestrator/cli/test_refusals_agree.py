"""What ``orch audit`` refuses, ``orch validate``, ``orch cost`` and ``orch sweep`` refuse, and in the same line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.kinds import KINDS
from tests.cases.given_kind import KIND as GIVEN_TOY
from tests.cases.refusals import Refused, refused_by, without_work
from tests.orchestrator.cli.refused_plans import refused, write_files
from tests.orchestrator.toy.kind import KIND as TOY


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the files that refused plans name; no command in it gets to its work."""
    place = tmp_path_factory.mktemp("refused")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORCH_STORE", str(place / "store"))
        without_work(patch)
        write_files(place)
        yield place


@pytest.mark.parametrize("plan", list(refused()), ids=lambda plan: f"{plan.kind}-{plan.source}-{plan.changes}"[:80])
def test_commands_refuse_what_an_audit_refuses(
    plan: Refused, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder / plan.place)
    monkeypatch.setitem(KINDS, "toy", (GIVEN_TOY if plan.place == "forms" else TOY).place)
    (line,) = refused_by("audit", plan, capsys)
    assert re.search(plan.said, line)
    found = {command: refused_by(command, plan, capsys)[:1] for command in plan.by}
    assert found == dict.fromkeys(plan.by, [line])
