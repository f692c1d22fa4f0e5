"""``orch cache``: what the store holds, why two artefacts differ, and how to get the room back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orchestrator.cli.lines import say
from orchestrator.engine.jobs.keys import differences
from orchestrator.engine.store.garbage import collect, find_garbage
from orchestrator.engine.store.inventory import age_text, find_artefact, find_run, nearest, size_text, what_it_is
from orchestrator.engine.store.patience import LIMIT, SHORT
from orchestrator.engine.store.store import Store, default_store_uri

if TYPE_CHECKING:
    from orchestrator.engine.store.garbage import Garbage
    from orchestrator.engine.store.run_records import Run
    from orchestrator.engine.store.store import Artefact, Store

F = TypeVar("F", bound=Callable[..., Any])


def store_option(function: F) -> F:
    """Add ``--store``."""
    text = "Store to look at: a folder or a URI (s3://…).  [default: $ORCH_STORE, else .orch/store]"
    return click.option("--store", "uri", metavar="URI", help=text)(function)


@click.group(name="cache")
def command() -> None:
    """Look into the store of finished work, and clean it."""


@command.command(name="ls")
@store_option
@click.option("--stage", help="Only artefacts of this stage (train, unlearn, search, score).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_store(uri: str | None, stage: str | None, as_json: bool) -> None:
    """List artefacts, what they take, and the recorded runs."""
    store = _open(uri, SHORT)
    problems: list[str] = []
    artefacts = list(store.artefacts(stage, on_damage=lambda _stage, _key, error: problems.append(str(error))))
    runs = store.runs()
    if as_json:
        say(json.dumps(_listing(store, artefacts, runs, problems), indent=1))
        return
    if not artefacts and not problems:
        say(f"no artefacts in {store.storage.place}")
    for line in [*_artefact_lines(artefacts), *problems, *_run_lines(store, runs)]:
        say(line)


@command.command(name="why")
@click.argument("key")
@click.argument("other", required=False)
@store_option
def why(key: str, other: str | None, uri: str | None) -> None:
    """Show which settings make artefact KEY another one than OTHER.

    KEY and OTHER may be shortened. Without OTHER, the artefact of the same stage that differs least is taken.
    """
    store = _open(uri)
    this = find_artefact(store, key)
    that = find_artefact(store, other) if other else nearest(this)
    say(f"     this: {_described(this)}")
    if that is None:
        say(f"it is the only artefact of the stage {this.stage}: there is nothing to compare it with")
        return
    say(f"{'    other' if other else '  nearest'}: {_described(that)}")
    rows = differences(this.document, that.document)
    say(f"{len(rows)} field{'s' * (len(rows) != 1)} differ{'s' * (len(rows) == 1)}{':' if rows else ''}")
    for line in _columns([(path, _short(a), _short(b)) for path, a, b in rows], ("field", "this", "that")):
        say(f"  {line}")


@command.command(name="gc")
@store_option
@click.option("--dry-run", is_flag=True, help="Print what would be removed; remove nothing.")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="DAYS",
    help="Keep artefacts younger than this.",
)
@click.option("--drop-run", "runs", multiple=True, metavar="ID", help="Forget this recorded run first (repeatable).")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also unfinished files younger than an hour; only when nothing is running.",
)
@click.option("--sizes-only", is_flag=True, help="Find damage by size instead of reading every byte.")
def collect_garbage(
    uri: str | None, dry_run: bool, days: float, runs: Sequence[str], everything: bool, sizes_only: bool
) -> None:
    """Remove leftovers, damaged artefacts and artefacts that no recorded run refers to."""
    store = _open(uri)
    dropped = [find_run(store, run) for run in runs]
    garbage = find_garbage(
        store, forget_runs=dropped, older_than_days=days, everything=everything, checksums=not sizes_only
    )
    if not dry_run:
        for run in dropped:
            store.drop_run(run)
        collect(store, garbage)
    for line in _garbage_lines(garbage, dropped, "would remove" if dry_run else "removed"):
        say(line)


def _open(uri: str | None, patience: float = LIMIT) -> Store:
    return Store(uri or default_store_uri(), patience)


def _listing(store: Store, artefacts: list[Artefact], runs: list[Run], problems: list[str]) -> dict[str, Any]:
    fields = ("stage", "key", "created", "seconds", "size", "document")
    return {
        "store": store.storage.place,
        "artefacts": [{name: getattr(artefact, name) for name in fields} for artefact in artefacts],
        "totals": {stage: {"artefacts": count, "bytes": size} for stage, count, size in _totals(artefacts)},
        "runs": [asdict(run) for run in runs],
        "damaged": problems,
    }


def _artefact_lines(artefacts: list[Artefact]) -> list[str]:
    if not artefacts:
        return []
    rows = [(a.stage, a.key[:12], size_text(a.size), _age(a.created), what_it_is(a.document)) for a in artefacts]
    lines = _columns(rows, ("stage", "key", "size", "age", "what"))
    totals = [f"{stage} {count} ({size_text(size)})" for stage, count, size in _totals(artefacts)]
    total = f"{len(artefacts)} artefact{'s' * (len(artefacts) != 1)}, {size_text(sum(a.size for a in artefacts))}"
    return [*lines, f"{total}: {', '.join(totals)}"]


def _run_lines(store: Store, runs: list[Run]) -> list[str]:
    if not runs:
        return ["no recorded runs"]
    there = {stage: store.keys(stage) for stage in store.stages()}
    rows = []
    for run in runs:
        named = [(stage, key) for stage, keys in run.keys.items() for key in keys]
        present = sum(key in there.get(stage, ()) for stage, key in named)
        rows.append((run.id, run.name, _age(run.created), f"{present} of {len(named)}"))
    return ["", *_columns(rows, ("run", "name", "age", "artefacts in the store"))]


def _garbage_lines(garbage: Garbage, dropped: list[str], done: str) -> list[str]:
    lines = [f"{done} the record of run {run}" for run in dropped]
    lines += [lost.problem for lost in garbage.damaged]
    for what, found in (
        ("file{} of interrupted writes", garbage.leftovers),
        ("damaged artefact{}", garbage.damaged),
        ("artefact{} that no recorded run refers to", garbage.unreferenced),
    ):
        size = size_text(sum(item.size for item in found))
        lines.append(f"{done} {len(found)} {what.format('s' * (len(found) != 1))} ({size})")
    lines.append(f"kept {garbage.kept} artefact{'s' * (garbage.kept != 1)}")
    if garbage.young:
        lines.append(f"left {garbage.young} unfinished file(s) younger than an hour: a run may be writing them (--all)")
    return lines


def _totals(artefacts: list[Artefact]) -> list[tuple[str, int, int]]:
    stages = dict.fromkeys(artefact.stage for artefact in artefacts)
    sizes = {stage: [a.size for a in artefacts if a.stage == stage] for stage in stages}
    return [(stage, len(some), sum(some)) for stage, some in sizes.items()]


def _described(artefact: Artefact) -> str:
    return f"{artefact.stage}/{artefact.key[:12]}, {_age(artefact.created)} old: {what_it_is(artefact.document)}"


def _age(created: str) -> str:
    return age_text(time.time() - datetime.fromisoformat(created).timestamp())


def _short(value: Any, width: int = 40) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _columns(rows: Sequence[Sequence[str]], titles: Sequence[str]) -> list[str]:
    if not rows:
        return []
    table = [titles, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(titles))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
