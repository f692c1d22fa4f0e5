"""How commands refuse a plan: in this process, by the words that a person types, and without any work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from orchestrator.cli.main import main
from orchestrator.engine.run.crew import Crew
from orchestrator.engine.run.run import Run

EVERY = ("validate", "cost", "sweep")
"""The commands that refuse what an audit refuses."""


class Refused(NamedTuple):
    """A plan that an audit of ``kind`` refuses: ``source``, a file or a shipped plan, with changes by --set.

    ``said``: a regular expression of what the refusal says, "" where the table does not say it; ``place``: the folder
    in which its files lie; ``by``: the other commands that refuse it too.
    """

    kind: str
    source: str
    changes: tuple[str, ...] = ()
    said: str = ""
    place: str = "."
    by: tuple[str, ...] = EVERY


COMMANDS: dict[str, tuple[str, ...]] = {
    "validate": (),
    "cost": ("--images-per-second=100",),
    "sweep": ("--vary=seed=0,1", "--out=o"),
}
"""These commands, and what they are given beside the plan."""


class WorkBegins(Exception):
    """A command has found nothing to refuse."""


def without_work(patch: pytest.MonkeyPatch) -> None:
    """Let no run get to its work, and watch none."""

    def begin(*_: object) -> None:
        raise WorkBegins

    for name in WORK:
        patch.setattr(Crew, name, begin)
    patch.setattr(Run, "watch", lambda *_, **__: None)


WORK = {"prepare": Crew.prepare, "settle": Crew.settle}


def with_work(patch: pytest.MonkeyPatch) -> None:
    """Let runs get to their work again."""
    for name, work in WORK.items():
        patch.setattr(Crew, name, work)


def sets(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return changes of a plan as --set takes them."""
    return tuple(f"{name}={json.dumps(value)}" for name, value in values.items())


def rows(test: Callable[..., None]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table that a test is run with (``parametrize``, ``family`` or ``as_one``)."""
    marks = getattr(test, "pytestmark", [])
    (table,) = [*(each.args[1] for each in marks if each.name == "parametrize"), *getattr(test, "tables", [])]
    for row in table:
        values = tuple(row.values) if isinstance(row, type(pytest.param())) else row  # of whatever tier
        yield values if isinstance(values, tuple) else (values,)


def refusals(capsys: pytest.CaptureFixture[str], command: Sequence[str]) -> list[str]:
    """Return the lines in which a command refuses a plan, empty where it does not.

    A command that shows the first of several counts the others, which is left out.
    """
    capsys.readouterr()
    found = main([*command])
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("orch: ")]
    return [re.sub(r" \(\+\d+ more\)$", "", line.removeprefix("orch: ")) for line in said] if found == 2 else []


def refused_by(command: str, plan: Refused, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines in which ``command`` refuses a plan."""
    head = ("audit", plan.kind, "--out=o") if command == "audit" else (command, *COMMANDS[command])
    return refusals(capsys, [*head, plan.source, *(f"--set={change}" for change in plan.changes)])
