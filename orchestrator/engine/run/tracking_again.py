"""A finished run that is run again: which run of the tracker it was, so that it is filled anew and not doubled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.plain_json import from_json
from audits.writing import write_whole
from orchestrator.engine.jobs.keys import digest

if TYPE_CHECKING:
    from mlflow import MlflowClient

FINISHED_FILE = ".tracked"  # in the folder of a finished run: the tag orch.run of its parent, and what it was a run of


def fingerprint(result: Mapping[str, Any]) -> str:
    """Return a short hash of what a result is of: its plan, its settings, and what they were searched or chosen by.

    What it keeps of points is in it: a run without scores must not be one whose scores the tracker has.
    Workers, threads and places of files are not in it; neither is any number that was found.
    """
    search, selection = result.get("search") or {}, result.get("selection") or {}
    told = {
        "name": result["name"],
        "plan": result.get("plan_hash", result["plan"]),
        "settings": result["settings"],
        "kept": [result.get("aggregate_only", False), result.get("pictures", True)],
        "search": [search.get(field) for field in ("algorithm", "seed", "seeds", "metric", "mode", "scheduler")],
        "trials": [[row["number"], row["changes"]] for row in search.get("trials", ())],
        "selection": [selection.get(field) for field in ("metric", "mode")],
        "among": [[row["setting"], row["overrides"]] for row in selection.get("settings", ())],
    }
    return digest(json.dumps(told, sort_keys=True, default=str).encode())[:16]


def keep_finished(out: Path, opened: Path, result: Mapping[str, Any]) -> None:
    """Leave in ``out`` by which tag, that in the file ``opened``, its finished parent is found.

    On a full disk nothing is left, and the next run of the same is another one.
    """
    with suppress(OSError):
        token = opened.read_text(encoding="utf-8")
        write_whole(out / FINISHED_FILE, json.dumps({"run": token, "of": fingerprint(result)}).encode())


def finished_before(client: MlflowClient, experiment: str, out: Path, result: Mapping[str, Any]) -> Any | None:
    """Return the finished parent of the very run that ``result`` is of, if ``out`` holds one; else None."""
    try:
        kept = from_json((out / FINISHED_FILE).read_text(encoding="utf-8"))
        token, of = str(kept["run"]), kept["of"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if of != fingerprint(result) or not token.isalnum():
        return None
    query = f"tags.orch.run = '{token}' and attributes.status = 'FINISHED'"
    return next(iter(client.search_runs([experiment], query)), None)
