"""Gradient inversion in sentences, tables and pictures; nothing for runs without it."""

from __future__ import annotations

from typing import Any, Protocol

from audits.gnq.gradient_inversion.settings import ANALYTIC
from orchestrator.gnq.page.numbers import change, change_entry, holm_p, standing
from orchestrator.gnq.page.reading import GnqRun
from orchestrator.gnq.result.judging import OTHER, RECOVERED
from orchestrator.report.grid import Grid, grid, left
from orchestrator.report.numbers import entry, estimate, number, or_dash, percent
from orchestrator.report.result import of_setting
from orchestrator.report.sentence import Sentence

OWN, CLASS_MEAN = "own", "class_mean"
GIVEN = {
    OWN: "its own gradient",
    OTHER: "another’s of the class (control)",
    CLASS_MEAN: "none: the class mean (control)",
}
SCORES = {"gnq": "GNQ", "squared_norm": "‖g‖²", "loss": "loss"}
MEASURES = {"ssim": "SSIM", "mse": "squared error"}
METHODS = {ANALYTIC: "first layer", "dlg": "DLG", "geiping": "cosine + TV"}
TERMS = {
    "Gradient inversion": (
        "The attacker observes training: the weights at a step and the gradient sent from there, of one point or "
        "averaged over a batch. The attack searches for inputs with that gradient. DLG: least squared distance; cosine "
        "+ TV: least angle and total variation (Geiping et al.); first layer: exact, where the first layer is fully "
        "connected. Labels of single points are read off the gradient, those of batches are given. Reconstructions of "
        "a batch are ordered to fit the images best, those of the controls too."
    ),
}
"""Terms of the glossary."""


class Searched(Protocol):
    """A row about a search."""

    @property
    def step(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def method(self) -> str: ...


def place(row: Searched) -> list[object]:
    """Return checkpoint, batch size and method of a row."""
    return [row.step, row.batch, METHODS.get(row.method, row.method)]


PLACE = (left("steps taken", merge=True), "points of the gradient", left("method"))


def quality_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return search × given: likeness of what is found to the points; None without any."""
    body = [
        [
            *place(row),
            GIVEN[row.given],
            row.points,
            entry(row.ssim),
            entry(row.mse),
            or_dash(row.labels_right, "{:.3f}".format),
        ]
        for row in of_setting(run.result.gradient_inversions, setting)
    ]
    level = percent(run.level, 0)
    columns = [*PLACE, left("given"), "points", f"SSIM [{level}]", f"squared error [{level}]", "labels read right"]
    title = f"{setting}: what gradient inversion gives back"
    return grid(f"gradient-inversion-{setting}", title, columns, body) if body else None


def quality_gain_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return likeness by a point's own gradient minus that of each control, paired by pool; None without any."""
    body = [
        [*place(row), GIVEN[row.against], MEASURES[row.measure], change_entry(row, run.level), holm_p(row)]
        for row in of_setting(run.result.gradient_inversion_gains, setting)
    ]
    columns = [*PLACE, left("against"), left("measure"), f"own minus it [{percent(run.level, 0)}]", "p (Holm)"]
    title = f"{setting}: own gradient minus controls, paired by pool; * after Holm’s correction"
    return grid(f"gradient-inversion-gains-{setting}", title, columns, body) if body else None


def foretelling_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return search × given: Spearman of each score with closeness in SSIM; None without any."""
    rows = [row for row in of_setting(run.result.recovery_correlations, setting) if row.outcome == RECOVERED]
    found = {(row.step, row.batch, row.method, row.given, row.score): row.spearman for row in rows}
    lines = {(row.step, row.batch, row.method, row.given): row for row in rows}
    body = [
        [*place(row), GIVEN[row.given], *(entry(found.get((*key, score))) for score in SCORES)]
        for key, row in lines.items()
    ]
    level = percent(run.level, 0)
    columns = [*PLACE, left("given"), *(f"{words} [{level}]" for words in SCORES.values())]
    title = f"{setting}: rank correlation of scores at the checkpoint with SSIM of what comes back"
    return grid(f"recovery-{setting}", title, columns, body) if body else None


def foretelling_gain_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return the correlation of GNQ minus those of controls, paired by pool; None without any."""
    body = [
        [*place(row), against(row.control, row.given), MEASURES[row.outcome], change_entry(row, run.level), holm_p(row)]
        for row in of_setting(run.result.recovery_gains, setting)
    ]
    columns = [*PLACE, left("minus"), left("measure"), f"difference [{percent(run.level, 0)}]", "p (Holm)"]
    title = (
        f"{setting}: correlation of GNQ with what comes back minus controls, paired by pool; * after Holm’s correction"
    )
    return grid(f"recovery-gains-{setting}", title, columns, body) if body else None


def against(control: str, given: str) -> str:
    """Return what GNQ's correlation is compared with."""
    return SCORES[control] if given == OWN else f"{SCORES[control]}, given {GIVEN[given]}"


def gradient_grids(run: GnqRun, setting: str) -> list[Grid | None]:
    """Return the tables of gradient inversion."""
    makers = (quality_grid, quality_gain_grid, foretelling_grid, foretelling_gain_grid)
    return [make(run, setting) for make in makers]


def gradient_verdict(run: GnqRun, setting: str) -> list[Sentence]:
    """Say whether gradients at the last checkpoint give points back, and whether GNQ foretells which, over searches."""
    rows = {(*key(row), row.given): row for row in of_setting(run.result.gradient_inversions, setting)}
    gains = [
        row
        for row in of_setting(run.result.gradient_inversion_gains, setting)
        if (row.measure, row.against) == (RECOVERED, OTHER)
    ]
    if not gains:
        return []
    last = max(row.step for row in gains)
    parts = [
        f"{where(gain)}: SSIM {estimate(rows[*key(gain), OWN].ssim)}, by the control’s gradient "
        f"{estimate(rows[*key(gain), OTHER].ssim)}, difference {change(gain)}: "
        f"{standing(gain, run.level, 'further from the point', 'closer to the point', 'no closer, a null result')}."
        for gain in gains
        if gain.step == last
    ]
    shown = any(gain.clear(run.level) > 0 for gain in gains if gain.step == last)
    said = [Sentence("leak" if shown else "plain", "Gradient inversion", " ".join(parts))]
    if ranks := foretold(run, setting):
        said.append(Sentence("plain", "GNQ and what gradients give back", ranks))
    return said


def foretold(run: GnqRun, setting: str) -> str:
    """Return how GNQ ranks what comes back over all searches, and how often it differs from each control."""
    own = [
        row.spearman
        for row in of_setting(run.result.recovery_correlations, setting)
        if (row.given, row.score, row.outcome) == (OWN, "gnq", RECOVERED) and row.spearman.known
    ]
    if not own:
        return ""
    least, most = (number(end) for end in (min(map(float, own)), max(map(float, own))))
    text = (
        f"Over {len(own)} searches (checkpoint × batch size × method), Spearman of GNQ with SSIM is {least} to {most}."
    )
    beside: dict[str, list[int]] = {}
    for row in of_setting(run.result.recovery_gains, setting):
        if row.outcome == RECOVERED:
            beside.setdefault(against(row.control, row.given), []).append(row.clear(run.level))
    for words, sides in beside.items():
        more, less = sides.count(1), sides.count(-1)
        found = f"more in {more}, less in {less} of {len(sides)} after Holm’s correction"
        null = "" if more or less else ": a null result"
        text += f" Minus {words}: {found}{null}."
    return text


def key(row: Searched) -> tuple[int, int, str]:
    """Return what tells searches apart."""
    return row.step, row.batch, row.method


def where(row: Searched) -> str:
    """Return a search in words."""
    batch = "single points" if row.batch == 1 else f"batches of {row.batch}"
    return f"{METHODS.get(row.method, row.method)}, {batch}, after {row.step} steps"


def gradient_pictures(run: GnqRun, setting: str) -> list[dict[str, Any]]:
    """Return one entry a point: (caption, picture or None) of the image, its class mean, and of every search."""
    found = []
    for row in of_setting(run.result.gradient_inversion_pictures, setting):
        shown = [("the image", row.image), ("its class mean", row.class_mean)]
        for search in row.searches:
            shown += [(f"{where(search)}", search.own), ("the same from another’s gradient (control)", search.other)]
        found.append({"title": f"Pool {row.pool}, point {row.point_id}, class {row.label}", "shown": shown})
    return found
