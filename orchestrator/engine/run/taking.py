"""The folder of a run, taken from whichever side it is started: what is another's is refused and left as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from audits.errors import BadInput
from audits.writing import CannotWrite
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.run.holding import held
from orchestrator.engine.run.output_folder import (
    LOG_FILE,
    RESULT_FILE,
    RUN_FILE,
    SWEEP_FILE,
    WHAT_TO_DO,
    Claim,
    Goal,
    claim_folder,
    goal_left,
    keep_run,
    keep_sweep,
    make_ready,
    of_sweep,
    refuse_other_command,
    refuse_other_goal,
    refuse_other_plan,
    refuse_other_sweep,
    refuse_strangers,
)
from orchestrator.engine.run.search_checks import head_of, samples_of
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal
from orchestrator.engine.run.tracking_uri import chosen_uri, database_in

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.run.console import Terminal
    from tune_spaces.registry import Sweep


@contextmanager
def hold_folder(
    folder: Path, plan: BasePlan, *, force: bool, sweep: Sweep | None = None, goal: Goal | None = None
) -> Iterator[Claim]:
    """Hold ``folder`` until a run of ``plan`` is over; yields what claims it, and keeps ``sweep`` and ``goal`` there.

    The run makes the claim when nothing about it can be refused any more without work: its data may not suffice, or a
    search that lies there may have been of other code. A run that is refused before leaves the folder as it was, and
    none where there was none. Raises BadInput for the folder of another run, unless ``force``, for one in which another
    command is at work, and where the run could not be tracked.
    """
    if not chosen_uri(plan.tracking.uri):
        database_in(folder)
    search = sweep.search if sweep is not None and sweep.search is not None and sweep.search.adaptive else None
    if not force:
        refuse_strangers(folder, of_sweep(sweep))
        refuse_other_goal(folder, goal)
        refuse_others(folder, plan, sweep if goal is None else None, goal, searches=search is not None)
        if sweep is not None:
            refuse_other_sweep(folder, sweep)
        refuse_other_plan(folder, with_digests(plan), begun=(folder / JOURNAL_FILE).is_file())
        if search is not None:
            head = head_of(search, with_digests(plan))
            Journal(folder / JOURNAL_FILE, head).check(samples_of(search))

    claimed: list[bool] = []

    def claim() -> None:
        if claimed:
            return
        claimed.append(True)
        claim_folder(folder, plan, force=force)
        keep_sweep(folder, sweep)
        if search is None and (folder / RUN_FILE).is_file():
            (folder / JOURNAL_FILE).unlink(missing_ok=True)
        if sweep is not None or goal_left(folder) is not None:
            keep_run(folder, sweep.name if sweep else "", goal)

    new, log = missing(folder), folder / LOG_FILE
    logged = log.exists()
    make_ready(folder)
    with held(folder):
        try:
            yield claim
        except (BadInput, CannotWrite):
            if not claimed:
                clear_away([] if logged else [log], new)
            raise


@contextmanager
def made_ready(folder: Path, plan: BasePlan, *, force: bool) -> Iterator[None]:
    """Make ``folder`` ready for the results of a run elsewhere, which may still be refused there.

    If the block raises anything, the folder is as it was. Raises as ``claim_folder``, which is to follow.
    """
    if not force:
        refuse_strangers(folder)
        refuse_other_plan(folder, with_digests(plan))
    new = missing(folder)
    try:
        make_ready(folder)
        yield
    except BaseException:
        clear_away([], new)
        raise


def missing(folder: Path) -> list[Path]:
    """Return ``folder`` and those above it that are not there, the innermost first."""
    found = []
    for place in (folder, *folder.parents):
        if place.exists():
            break
        found.append(place)
    return found


def clear_away(files: Iterable[Path], folders: Iterable[Path]) -> None:
    """Remove files without content, and folders in which nothing is."""
    with suppress(OSError):
        for file in files:
            if file.exists() and not file.stat().st_size:
                file.unlink()
        for place in folders:
            place.rmdir()


def tell_notes(terminal: Terminal, plan: BasePlan) -> None:
    """Print what a plan notes and warns of."""
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)


def refuse_others(folder: Path, plan: BasePlan, sweep: Sweep | None, goal: Goal | None, *, searches: bool) -> None:
    """Raise BadInput for the result of another command, and for a search that has begun and is another's."""
    if not searches and (folder / JOURNAL_FILE).is_file() and not (folder / RESULT_FILE).is_file():
        raise BadInput(f"--out {folder} holds a search that has not ended ({JOURNAL_FILE}); {WHAT_TO_DO}")
    told_by_file = sweep is not None and sweep.text and (folder / SWEEP_FILE).is_file()
    if goal is None and not told_by_file:
        refuse_other_command(folder, f"{plan.kind}-audit" if sweep is None else sweep.name)
