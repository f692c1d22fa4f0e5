"""The page of a run that is not finished: how far it is, or where it stopped; one HTML file."""

from __future__ import annotations

import re
import time

from orchestrator.engine.durations import seconds
from orchestrator.engine.progress import LOOK_SECONDS, Progress, SettingProgress
from orchestrator.judgement.wording import DASH
from orchestrator.report.grid import Entry, Grid, grid, left
from orchestrator.report.grid_formats import as_html
from orchestrator.report.numbers import number
from orchestrator.report.result import look_up
from orchestrator.report.writing import template

TITLES = {
    "running": "running, not finished",
    "summing up": "all jobs are done, the report comes next",
    "finished": "finished",
    "stopped": "stopped before its end",
    "unreported": "finished, but its report could not be written",
}
REFRESHED = ("running", "summing up")
BETWEEN_PARTS = re.compile(r"\.(?!\d)")
"""Where the name of a number is broken; a point before a digit is a decimal one."""

MOST_BESIDE = 8
"""The most numbers that stand beside a setting, in its line."""


def in_progress(progress: Progress) -> str:
    """Return the page of a run that is not finished."""
    from markupsafe import Markup

    return template("orchestrator.report", "in_progress.html.j2").render(
        run=progress,
        title=TITLES[progress.phase],
        refresh=round(LOOK_SECONDS) if progress.phase in REFRESHED else None,
        command=f"orch audit {progress.kind}" if is_audit(progress) else f"orch sweep {progress.name}",
        model=look_up(progress.plan, "model.name"),
        data=look_up(progress.plan, "data.name"),
        since=moment(progress.since),
        looked=moment(progress.looked),
        lasted=seconds(progress.looked - progress.since),
        stages=[(stage, words_left(stage.left)) for stage in progress.stages],
        ready=sum(each.done == each.needed for each in progress.settings),
        settings=Markup("\n".join(map(as_html, settings_grids(progress)))),
    )


def is_audit(progress: Progress) -> bool:
    """Return whether the run is an audit and no sweep."""
    return progress.name == f"{progress.kind}-audit"


def moment(at: float) -> str:
    """Return a time (seconds since 1970) as the clock of this machine shows it."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at)).strip()


def words_left(left: float | None) -> str:
    """Return how long a stage still takes, if that can be said."""
    return "" if left is None else f"about {seconds(left)} left"


def settings_grids(progress: Progress) -> list[Grid]:
    """Return how far each setting is, and its numbers once all of it is done: beside it, or a line each if many."""
    if not progress.settings:
        return []
    names = list(dict.fromkeys(name for each in progress.settings for name in each.numbers))
    beside = names if len(names) <= MOST_BESIDE else []
    states = [
        [each.name, state(each), *(number(each.numbers.get(name)) if each.numbers else DASH for name in beside)]
        for each in progress.settings
    ]
    columns = [left("setting"), left("state"), *(BETWEEN_PARTS.sub("\n", name) for name in beside)]
    grids = [grid("settings", "Settings", columns, states)]
    if not beside and names:
        finished = [each for each in progress.settings if each.numbers]
        lines = [[name, *(number(each.numbers.get(name)) for each in finished)] for name in names]
        grids.append(grid("numbers", "Numbers", [left("number"), *(each.name for each in finished)], lines))
    return grids


def state(setting: SettingProgress) -> Entry:
    """Return whether a setting is finished, and how many of its jobs are."""
    if setting.done == setting.needed:
        return Entry("finished")
    return Entry("waiting", f"{setting.done} of {setting.needed} jobs")
