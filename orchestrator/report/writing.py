"""The page of a run: figures into files, and one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from audits.writing import write_whole
from orchestrator.engine.media import file_name, html, visible
from orchestrator.engine.run.output_folder import FIGURES, REPORT_FILE
from orchestrator.judgement.rows import Verdict
from orchestrator.judgement.wording import meanings, outcome, unbroken, with_term
from orchestrator.report import selection
from orchestrator.report.figure_data import data_of
from orchestrator.report.gate_words import Named, gate_words
from orchestrator.report.grid import Grid
from orchestrator.report.grid_formats import as_html
from orchestrator.report.result import FinishedRun
from orchestrator.report.style import drawing, save
from orchestrator.report.trials import remark, trial_grid
from orchestrator.report.verdict_figure import caption, left_out, verdict_figure
from orchestrator.report.words import shared_words

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

MOST_BYTES = 8192
"""Numbers of a figure that are put into the page itself."""
WARNINGS = re.compile("<!-- warnings -->.*?<!-- end of warnings -->", re.DOTALL)
"""What warnings.html.j2 writes."""

Makers = Mapping[str, Callable[[], "Figure | None"]]
"""Name of a figure → what draws it, or has nothing to draw."""


def draw(makers: Makers, folder: Path) -> dict[str, str]:
    """Write every figure that its maker has something for, and return them as SVG elements by name.

    ``folder`` lies in the folder of the run; raises CannotWrite where a link leads there.
    """
    drawn = {}
    for name, make in makers.items():
        with drawing(name):
            figure = make()
        if figure is not None:
            with drawing(name):
                data = data_of(figure)
            drawn[name] = save(figure, name, folder)
            write_whole(folder / f"{file_name(name)}.csv", data.encode(), below=folder.parent, private=True)
    return drawn


def write_page(
    out: Path,
    package: str,
    run: FinishedRun,
    svgs: Mapping[str, str],
    answer: Verdict | None = None,
    named: Named = shared_words,
    all_controls: Grid | None = None,
    **content: Any,
) -> Path:
    """Fill the template of a kind's ``package`` with ``content`` into ``out``/report.html; return its path.

    ``answer`` stands on the first screen, with its picture. ``named``: the kind's names of components.
    ``all_controls``: their table.

    The template also gets ``run``, ``figure(name, caption, look)`` for drawn figures, ``drawn`` (their names),
    ``table(grid)``, and what is needed to run again.
    """
    from markupsafe import Markup

    if answer is not None:
        svgs = {**svgs, **draw({"verdict": lambda: verdict_figure(answer)}, out / FIGURES)}

    def figure(name: str, caption: str, look: str = "", told: str = "") -> Markup:
        if name not in svgs:
            return Markup("")
        text = html(caption)
        image = f'<div class="wide" tabindex="0" role="img" aria-label="{text} {html(told)}">{svgs[name]}</div>'
        under = f"<figcaption>{text} {data_link(out / FIGURES / f'{file_name(name)}.csv')}</figcaption>"
        return Markup(f'<figure class="{look}" id="figure-{file_name(name)}">{image}{under}</figure>')

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
        answer=answer,
        all_controls=all_controls,
        answer_access=" or ".join(map(with_term, answer.access)) if answer else "",
        answer_meanings=meanings(answer.headline) if answer else "",
        gate_words=gate_words(run.gate, named) if run.gate else "",
        answer_left_out=left_out(answer) if answer else "",
        answer_caption=caption(answer) if answer else "",
        date=day(run.date),
        **content,
    )
    write_whole(page, text.encode(), private=True)
    return page


def write_warnings(out: Path, warnings: Sequence[str]) -> None:
    """Put ``warnings`` into ``out``/report.html in place of those that are there; nothing is drawn again."""
    page = out / REPORT_FILE
    told = template("orchestrator.report", "warnings.html.j2").render(warnings=warnings)
    write_whole(page, WARNINGS.sub(lambda _: told, page.read_text(encoding="utf-8"), count=1).encode(), private=True)


def template(package: str, name: str = "page.html.j2") -> Template:
    """Return the template ``name`` of a ``package``, such as a kind's page; it escapes what it is given.

    The shell that it extends and the style are those of this package.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader("orchestrator.report", "."), PackageLoader(package, ".")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=shown
    )
    environment.filters |= {"unbroken": unbroken, "outcome": outcome, "policy": policy}
    return environment.get_template(name)


def policy(script: str) -> str:
    """Return the content policy of a page: its one script runs, known by its digest, and nothing is loaded or sent."""
    from markupsafe import Markup

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )


def shown(value: object) -> object:
    """Return what a template writes of a value: of text the characters that show; it is escaped afterwards."""
    return visible(value, "\n\t") if type(value) is str else value


def data_link(file: Path) -> str:
    """Return a link to the numbers of a figure: within the page where they are few, else to the file beside it."""
    if not file.is_file():
        return ""
    data = file.read_bytes()
    name = f"{FIGURES}/{file.name}"
    address = f"data:text/csv;base64,{base64.b64encode(data).decode()}" if len(data) <= MOST_BYTES else name
    return f'<a href="{address}" download="{file.name}">Data of this figure (CSV)</a>'


def day(date: str | None) -> str:
    """Return an ISO date in words; "" for results that do not tell it."""
    if not date:
        return ""
    when = datetime.fromisoformat(date)
    return f"{when.day} {when:%B %Y}, {when:%H:%M} UTC"


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
