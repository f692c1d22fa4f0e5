"""Write the report of a membership audit: figures as SVG and PNG, and one HTML page without network or script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from orchestrator.membership.result import above_promise, promised
from orchestrator.report.exposure import MOST_POINTS, Images, thumbnail
from orchestrator.report.membership import curves, figures, tables
from orchestrator.report.membership.glossary import GLOSSARY, MODES, words
from orchestrator.report.membership.reading import MembershipRun, read_membership_run
from orchestrator.report.membership.verdict import finds, membership_verdict
from orchestrator.report.reading import Row, look_up, percent
from orchestrator.report.writing import changes, command, draw, template

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_membership_report(out: Path, images: Images | None = None) -> Path:
    """Write ``figures/*.svg|png`` and ``report.html`` under ``out`` from its result.json and scores.parquet.

    ``images``: pixels of points of the plan's data set by id, shown beside exposed points. Same run, same bytes.
    Returns the page's path; raises BadInput when the run is not finished or is of another kind.
    """
    run = read_membership_run(out)
    page = out / "report.html"
    page.write_text(_page(run, _draw(run, out / "figures"), images or {}), encoding="utf-8")
    return page


def _draw(run: MembershipRun, folder: Path) -> dict[str, str]:
    """Write every figure that the run has something for, and return them as SVG elements by name."""
    makers: dict[str, Callable[[], Figure | None]] = {}
    for place, name in enumerate(run.shown):
        makers[f"rates_{place}"] = lambda name=name: figures.precision_and_coverage(run, name)  # type: ignore[misc]  # a default binds the loop's value
        makers[f"control_{place}"] = lambda name=name: figures.false_positive_rates(run, name)  # type: ignore[misc]  # likewise
    makers |= {
        "frozen_layers": lambda: curves.frozen_layers(run),
        "sweep": lambda: curves.sweep_curves(run),
        "confidence": lambda: figures.confidences(run),
        "loss": lambda: figures.losses(run),
        "reconstruction": lambda: figures.reconstruction(run),
    }
    return draw(makers, folder)


def _page(run: MembershipRun, svgs: dict[str, str], images: Images) -> str:
    """Fill the template."""
    from markupsafe import Markup

    return template("membership/membership.html.j2").render(
        result=run.result,
        svgs={name: Markup(svg) for name, svg in svgs.items()},
        verdict=membership_verdict(run),
        asked=[(name, run.mode(name), MODES.get(run.mode(name), "")) for name in run.shown],
        effort=_effort(run),
        level=percent(run.level, 0),
        settings=[_setting(run, name) for name in run.shown],
        overview=tables.overview_grid(run),
        fit=tables.fit_grid(run),
        selections=tables.selection_grid(run),
        exposed=_exposed(run, images),
        glossary=GLOSSARY,
        command=command(run.result, sweep=run.is_sweep),
        versions=sorted(run.result["versions"].items()),
        plan=yaml.safe_dump(run.plan, sort_keys=False, allow_unicode=True),
        changes=changes(run.result),
        words=words,
        value=tables.value,
        bounds=tables.bounds,
        finds=finds,
        promised=promised,
        narrow=narrow,
        missed=above_promise,
    )


def narrow(row: Row, name: str) -> str:
    """Return the interval over targets alone, in words for a tooltip; nothing where there is none."""
    low, high = row.get(f"{name}_t_low"), row.get(f"{name}_t_high")
    return "" if low is None or high is None else f"over targets alone [{low:.3f}, {high:.3f}]"


def _effort(run: MembershipRun) -> str:
    """Return data, model, numbers of models and seconds in one line."""
    plan, population = run.plan, run.result["population"]
    named = {"targets": "targets", "contrast": "contrast models", "fresh": "fresh models", "candidates": "candidates"}
    parts = [f"{look_up(plan, 'model.name')} on {look_up(plan, 'data.name')}"]
    parts += [f"{size} {text}" for name, text in named.items() if (size := look_up(plan, f"split.{name}"))]
    made = f"{population['trained']} trained, {population['reused']} reused"
    parts.append(f"{population['models']} models in all ({made})")
    if "seconds" in run.result:
        parts.append(f"{run.result['seconds']:.0f} s")
    return "; ".join(parts) + "."


def _setting(run: MembershipRun, name: str) -> dict[str, Any]:
    """Return what the page shows of one setting: its cells by selection, with the rule of each."""
    rules = {row["selector"]: row for row in run.result["selections"] if row["setting"] == name}
    blocks = [
        {"name": words(selection), "rule": rules.get(selection), "rows": rows}
        for selection, rows in tables.by_selection(run, name).items()
    ]
    return {"name": name, "mode": run.mode(name), "level": tables.level_words(run.rows(name)), "blocks": blocks}


def _exposed(run: MembershipRun, images: Images) -> list[dict[str, Any]]:
    """Return exposed points by setting, attack and selector, at most ``MOST_POINTS`` each, most often found first.

    A thumbnail is shown only where the setting asks about the plan's own data set, which ``images`` are taken from.
    """
    blocks: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for point in run.result["exposed"] or []:
        blocks.setdefault((point["setting"], point["attack"], point["selector"]), []).append(point)
    found = []
    for (setting, attack, selector), points in blocks.items():
        if setting not in run.shown:
            continue
        own = run.value(setting, "data.name") == look_up(run.plan, "data.name")
        ordered = sorted(points, key=lambda point: -point["hits"] / max(point["targets"], 1))[:MOST_POINTS]
        shown = [
            {**point, "image": thumbnail(images[point["point_id"]]) if own and point["point_id"] in images else ""}
            for point in ordered
        ]
        place = {"setting": setting, "attack": words(attack), "selector": words(selector)}
        found.append({**place, "points": shown, "all": len(points)})
    return found
