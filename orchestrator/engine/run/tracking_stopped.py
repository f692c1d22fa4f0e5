"""A run that did not come to its end: which run of the tracker it was, so that the next process goes on in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from audits.data.regular import content_of
from orchestrator.engine.jobs.keys import digest
from orchestrator.engine.kind import Kind, StandIns, nothing_stands_in
from orchestrator.engine.media import visible
from orchestrator.engine.run.search_result import told_of
from orchestrator.engine.run.tracking_again import checked_token, finished_token
from orchestrator.engine.run.tracking_names import allowed_name, flatten, plan_hash, settled

if TYPE_CHECKING:
    from mlflow import MlflowClient

OPEN_FILE = ".tracking"  # in the folder of a run that is not finished: the tag orch.run of its parent
PARENT = "mlflow.parentRunId"
OF, STATE = "orch.run_of", "orch.state"
RUNNING = "running"  # the state of a trial that has not ended

Overrides = Mapping[str, Any]


class Kept(NamedTuple):
    """What a run keeps of single points."""

    aggregate_only: bool = False
    pictures: bool = True


ALL_KEPT = Kept()


@dataclass(frozen=True)
class Subject:
    """What is tracked: a run of ``plan`` under a ``name``; ``settings``: those known so far, with what they change.

    ``plan_hash``: over what decides the scores. ``stand_ins``: those of the kind.
    """

    kind: str
    name: str
    plan: Mapping[str, Any]
    plan_hash: str
    settings: Mapping[str, Overrides] = field(default_factory=dict)
    kept: Kept = ALL_KEPT
    stand_ins: StandIns = nothing_stands_in

    @property
    def identity(self) -> str:
        """A short hash of the run, in which workers, threads, places of files and settings do not count.

        What it keeps of points counts: a run without scores must not go on in one that may have some.
        """
        told = [self.kind, self.name, self.plan_hash, *self.kept]
        return digest(json.dumps(told).encode())[:16]

    def has(self, children: Iterable[Any]) -> bool:
        """Return whether all of ``children`` (MLflow's runs) are of settings that this run has."""
        return all(self._has(str(child.info.run_name), child.data.params) for child in children)

    def _has(self, name: str, logged: Mapping[str, str]) -> bool:
        if name not in self.settings:
            return False
        changed = settled(flatten(self.settings[name]))
        return all(logged.get(allowed_name(path), text_of(value)) == text_of(value) for path, value in changed.items())


def subject_of(kind: Kind, result: Mapping[str, Any]) -> Subject:
    """Return what a result (the content of result.json) is of."""
    settings = {row["setting"]: dict(row["overrides"]) for row in result["settings"]}
    return Subject(
        kind.name,
        str(result["name"]),
        result["plan"],
        str(result.get("plan_hash", plan_hash(result["plan"]))),
        {trial.name: dict(trial.changes) for trial in told_of(result)} | settings,
        Kept(bool(result.get("aggregate_only", False)), bool(result.get("pictures", True))),
        kind.stand_ins,
    )


def text_of(value: Any) -> str:
    """Return a parameter as MLflow keeps it."""
    return visible(str(value), "\n\t")[:6000]


def unfinished(client: MlflowClient, experiment: str, out: Path) -> tuple[list[Any], str]:
    """Return the parents that were opened for ``out`` and not finished, and the tag ``orch.run`` for another one."""
    token = open_token(out)
    if token is None:
        return [], uuid4().hex
    found = client.search_runs([experiment], f"tags.orch.run = '{token}' and attributes.status != 'FINISHED'")
    return list(found), uuid4().hex if found else token


def open_token(out: Path) -> str | None:
    """Return the tag ``orch.run`` of the run that is not finished in ``out``; None where no file says one.

    The folder may be somebody else's: a pipe is not waited for, and what is no such tag is not sent to MLflow.
    """
    try:
        return checked_token(content_of(out / OPEN_FILE).decode("utf-8"))
    except (OSError, ValueError):
        return None


def tokens_in(out: Path) -> list[str]:
    """Return the tags ``orch.run`` that files in ``out`` say: of a run that is not finished, and of a finished one."""
    kept = finished_token(out)
    return [token for token in (open_token(out), kept and kept[0]) if token]


def end_children(client: MlflowClient, children: Iterable[str], status: str) -> None:
    """End those child runs that are still running; a trial that was cut is tagged as interrupted."""
    for child in children:
        found = client.get_run(child)
        if found.info.status == "RUNNING":
            if found.data.tags.get(STATE) == RUNNING:
                client.set_tag(child, STATE, "interrupted")
            client.set_terminated(child, status)
