"""Tables of the page of a given model."""

from __future__ import annotations

from orchestrator.gnq.given.page.words import GROUPS, SCORES
from orchestrator.gnq.given.rows import ClassRow, GivenResult, GroupRow, PointRow
from orchestrator.judgement.estimate import Estimate
from orchestrator.report.chance import STAR, beyond
from orchestrator.report.controls import controls_grid
from orchestrator.report.grid import Column, Entry, Grid, grid, left
from orchestrator.report.numbers import entry, number, or_dash, percent
from orchestrator.report.pictures import Images, thumbnail
from orchestrator.report.result import of_setting


def all_grids(run: GivenResult) -> list[Grid]:
    """Return the tables of every setting."""
    found = []
    for entry_ in run.settings:
        setting = entry_.setting
        more = [separation_grid(run, setting), class_grid(run, setting), point_grid(run, setting, {})]
        found += [group_grid(run, setting), *(each for each in more if each), target_grid(run, setting)]
    return [*found, controls_grid(run.controls)]


def terminal_grids(run: GivenResult) -> list[Grid]:
    """Return the tables of the main setting that a terminal shows."""
    return [group_grid(run, run.main_setting), class_grid(run, run.main_setting)]


def middle(found: Estimate) -> Entry:
    """Return a median with the middle 80 % beside it."""
    low, high = found.ends
    return Entry(f"{float(found):.3g}", f"[{low:.3g}, {high:.3g}]")


def shared(row: GroupRow | ClassRow) -> list[object]:
    """Return how many points a line is about, and how many of them are exposed."""
    return [row.points, f"{row.exposed_points} ({percent(row.exposed)})", middle(row.uniqueness)]


def group_grid(run: GivenResult, setting: str) -> Grid:
    """Return training points and controls, one below the other."""
    median = Column("GNQ: median\n[middle 80 %]", narrow="short")
    body = [
        [
            GROUPS[row.group],
            *shared(row),
            or_dash(row.highest, "{:.3g}".format),
            number(row.bits),
            f"{row.loss:.3g}",
            number(row.accuracy),
            percent(row.vanished),
            row.copied,
        ]
        for row in of_setting(run.table, setting)
    ]
    columns = [left(""), "points", "exposed", median, "highest", "bits\n(mean)", "loss\n(median)", "accuracy"]
    more = [Column("vanished", narrow="nothing"), Column("copied", narrow="nothing")]
    return grid(f"groups-{setting}", f"{setting}: gradient uniqueness", [*columns, *more], body)


def separation_grid(run: GivenResult, setting: str) -> Grid | None:
    """Return how far scores tell training points from controls; None without controls."""
    body = [
        [SCORES[row.score], entry(row.auc, mark=STAR if beyond(row.auc) else "")]
        for row in of_setting(run.separation, setting)
    ]
    columns = [left("lower score: a training point"), f"AUC [{percent(run.level, 0)} over points], * above .500"]
    return (
        grid(f"separation-{setting}", f"{setting}: training points against controls", columns, body) if body else None
    )


def class_grid(run: GivenResult, setting: str) -> Grid:
    """Return the training points by class."""
    body = [
        [row.label, *shared(row), number(row.bits), f"{row.loss:.3g}", number(row.accuracy)]
        for row in of_setting(run.classes, setting)
    ]
    columns = [left("class"), "points", "exposed", "GNQ: median [middle 80 %]", "bits", "loss", "accuracy"]
    return grid(f"classes-{setting}", f"{setting}: training points by class", columns, body)


def point_grid(run: GivenResult, setting: str, images: Images) -> Grid | None:
    """Return the most exposed training points, with pictures where there are any."""
    body = [point_line(point, images) for point in of_setting(run.points, setting)]
    columns = [
        left(""),
        "rank",
        "point",
        left("class"),
        "GNQ",
        "leverage",
        "Σ ½·log₂\n(1 + GNQ)",
        "bits",
        "loss",
        "‖g‖²",
    ]
    title = f"{setting}: the most exposed training points"
    return grid(f"points-{setting}", title, [*columns, left("answer"), left("copied")], body) if body else None


def point_line(point: PointRow, images: Images) -> list[object]:
    """Return one exposed point, with its picture where there is one."""
    picture = Entry("")
    if point.point_id in images:
        picture = Entry(f"point {point.point_id}", image=thumbnail(images[point.point_id]))
    numbers = (point.log_uniqueness, point.bits, point.loss, point.squared_norm)
    told = [picture, point.rank, point.point_id, point.label, f"{point.uniqueness:.3g}", number(point.leverage)]
    answers = ["right" if point.correct else "wrong", "yes" if point.copied else ""]
    return [*told, *(f"{value:.3g}" for value in numbers), *answers]


def target_grid(run: GivenResult, setting: str) -> Grid:
    """Return what was audited."""
    body = [
        line
        for row in of_setting(run.targets, setting)
        for line in (
            *([name, digest] for name, digest in zip(row.weights, row.digests, strict=True)),
            [f"members: {row.members}", row.members_digest],
        )
    ]
    return grid(
        f"target-{setting}", f"{setting}: what was audited", [left("file or rule"), left("sha256 of its content")], body
    )
