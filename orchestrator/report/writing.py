"""The page of a run: figures into files, and one HTML file that needs no network and no script."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from orchestrator.engine.run.output_folder import REPORT_FILE, write_whole
from orchestrator.report import selection
from orchestrator.report.grid import Grid
from orchestrator.report.grid_formats import as_html
from orchestrator.report.result import FinishedRun
from orchestrator.report.style import drawing, save
from orchestrator.report.trials import remark, trial_grid

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

WARNINGS = re.compile("<!-- warnings -->.*?<!-- end of warnings -->", re.DOTALL)
"""What warnings.html.j2 writes."""

Makers = Mapping[str, Callable[[], "Figure | None"]]
"""Name of a figure → what draws it, or has nothing to draw."""


def draw(makers: Makers, folder: Path) -> dict[str, str]:
    """Write every figure that its maker has something for, and return them as SVG elements by name."""
    drawn = {}
    for name, make in makers.items():
        with drawing(name):
            figure = make()
        if figure is not None:
            drawn[name] = save(figure, name, folder)
    return drawn


def write_page(out: Path, package: str, run: FinishedRun, svgs: Mapping[str, str], **content: Any) -> Path:
    """Fill the template of a kind's ``package`` with ``content`` into ``out``/report.html; return its path.

    The template also gets ``run``, ``figure(name, caption, look)`` for drawn figures, ``drawn`` (their names),
    ``table(grid)``, and what is needed to run again.
    """
    from markupsafe import Markup, escape

    def figure(name: str, caption: str, look: str = "") -> Markup:
        if name not in svgs:
            return Markup("")
        text = escape(caption)
        image = f'<div class="wide" role="img" aria-label="{text}">{svgs[name]}</div>'
        return Markup(f'<figure class="{look}" id="{name}">{image}<figcaption>{text}</figcaption></figure>')

    def table(grid: Grid) -> Markup:
        return Markup(as_html(grid))

    chosen = getattr(run, "selection", None)
    trials = {"table": table(trial_grid(run.search)), "remark": remark(run.search)} if run.search else None

    page = out / REPORT_FILE
    text = template(package).render(
        run=run,
        warnings=run.warnings,
        drawn=set(svgs),
        figure=figure,
        table=table,
        command=run.again(),
        plan=yaml.safe_dump(dict(run.plan), sort_keys=False, allow_unicode=True),
        changes=changes(run),
        trials=trials,
        chosen=selection.sentences(chosen) if chosen else [],
        chosen_grids=selection.grids(chosen),
        **content,
    )
    write_whole(page, text.encode())
    return page


def write_warnings(out: Path, warnings: Sequence[str]) -> None:
    """Put ``warnings`` into ``out``/report.html in place of those that are there; nothing is drawn again."""
    page = out / REPORT_FILE
    told = template("orchestrator.report", "warnings.html.j2").render(warnings=warnings)
    write_whole(page, WARNINGS.sub(lambda _: told, page.read_text(encoding="utf-8"), count=1).encode())


def template(package: str, name: str = "page.html.j2") -> Template:
    """Return the template ``name`` of a ``package``, such as a kind's page; it escapes what it is given.

    The shell that it extends and the style are those of this package.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader(package, "."), PackageLoader("orchestrator.report", ".")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template(name)


def changes(run: FinishedRun) -> list[tuple[str, str]]:
    """Return what each setting changes; nothing for a run of one setting."""
    if len(run.settings) < 2:
        return []
    return [
        (entry.setting, ", ".join(f"{path} = {value}" for path, value in entry.overrides.items()) or "the plan")
        for entry in run.settings
    ]


def effort(run: FinishedRun, parts: list[str]) -> str:
    """Return ``parts``, how many models the run needed, and how long it took, in one line."""
    if made := run.population:
        parts = [*parts, f"{made['models']} models in all ({made['trained']} trained, {made['reused']} reused)"]
    if run.seconds is not None:
        parts = [*parts, f"{run.seconds:.0f} s"]
    return "; ".join(part for part in parts if part) + "."
