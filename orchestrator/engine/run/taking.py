"""How a run takes its folder, from whichever side it is started: what is another's is refused and left as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.engine.given_files import with_digests
from orchestrator.engine.run.output_folder import (
    Claim,
    Goal,
    claim_folder,
    goal_left,
    keep_run,
    keep_sweep,
    refuse_other_goal,
    refuse_other_sweep,
)
from orchestrator.engine.run.search_checks import head_of, samples_of
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from tune_spaces.registry import Sweep


def take(
    folder: Path, plan: BasePlan, *, force: bool, sweep: Sweep | None = None, goal: Goal | None = None
) -> Claim | None:
    """Claim ``folder`` for a run of ``plan`` and keep ``sweep`` and ``goal`` there.

    Where a search lies in ``folder`` its claim is returned instead of made: the search may have been of other code or
    data, which shows when it looks at its journal; it makes the claim then. Raises BadInput for the folder of another
    run, unless ``force``.
    """
    searches = sweep is not None and sweep.search is not None and sweep.search.adaptive
    if not force:
        refuse_other_goal(folder, goal)
    if sweep is not None and not force:
        refuse_other_sweep(folder, sweep)
        if sweep.search is not None and sweep.search.adaptive:
            head = head_of(sweep.search, with_digests(plan))
            Journal(folder / JOURNAL_FILE, head).check(samples_of(sweep.search))

    def claim() -> None:
        claim_folder(folder, plan, force=force)
        if sweep is not None:
            keep_sweep(folder, sweep)
        if sweep is not None or goal_left(folder) is not None:
            keep_run(folder, sweep.name if sweep else "", goal)

    if searches and (folder / JOURNAL_FILE).is_file():
        return claim
    claim()
    return None
