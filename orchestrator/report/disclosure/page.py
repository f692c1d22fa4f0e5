"""Write the report of a disclosure audit: figures as SVG and PNG, and one HTML page without network or script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from orchestrator.report.disclosure import figures, inversion, predictions, sweeps, tables
from orchestrator.report.disclosure.frontier import frontier
from orchestrator.report.disclosure.glossary import GLOSSARY, arm_words, ranking_words, words
from orchestrator.report.disclosure.reading import DisclosureRun, read_disclosure_run
from orchestrator.report.disclosure.verdict import disclosure_verdict
from orchestrator.report.exposure import Images, thumbnail
from orchestrator.report.reading import look_up, percent
from orchestrator.report.writing import changes, command, draw, template


def write_disclosure_report(out: Path, images: Images | None = None) -> Path:
    """Write ``figures/*.svg|png`` and ``report.html`` under ``out`` from its result.json.

    ``images``: pixels of points of the plan's data set by id, shown beside the most exposed points. Same run, same
    bytes. Returns the page's path; raises BadInput when the run is not finished or is of another kind.
    """
    run = read_disclosure_run(out)
    setting = run.main_setting
    makers = {
        "frontier": lambda: frontier(run, setting),
        "bins": lambda: figures.bins(run, setting),
        "correlations": lambda: figures.correlations(run, setting),
        "traces": lambda: figures.traces(run, setting),
        "levels": lambda: sweeps.levels(run),
        "bin_settings": lambda: sweeps.bin_settings(run),
        "cuts": lambda: sweeps.cut_curves(run),
    }
    page = out / "report.html"
    page.write_text(_page(run, setting, draw(makers, out / "figures"), images or {}), encoding="utf-8")
    return page


def _page(run: DisclosureRun, setting: str, svgs: dict[str, str], images: Images) -> str:
    """Fill the template with the main setting of a run and one line for every other."""
    from markupsafe import Markup

    inverted = inversion.inversion_grid(run, setting)
    return template("disclosure/disclosure.html.j2").render(
        result=run.result,
        setting=setting,
        svgs={name: Markup(svg) for name, svg in svgs.items()},
        verdict=disclosure_verdict(run),
        effort=_effort(run, setting),
        level=percent(run.level, 0),
        judge=words(run.judge),
        removes=any(arm["method"] == "remove" for arm in run.arms(setting)),
        frontier=tables.frontier_grid(run, setting),
        differences=tables.difference_grid(run, setting),
        ways=[grid for arm in run.arms(setting) if (grid := tables.ways_grid(run, setting, arm))],
        removed=tables.removed_grid(run, setting),
        onion=tables.onion_grid(run, setting),
        bins=predictions.bin_grid(run, setting),
        correlations=predictions.correlation_grid(run, setting),
        gains=predictions.gain_grid(run, setting),
        cells=tables.cell_grid(run, setting),
        points=_points(run, setting, images),
        ranked_by=ranking_words(run.speaker),
        inversion=inverted,
        inversion_gains=inversion.inversion_gain_grid(run, setting),
        pictures=inversion.inversion_pictures(run, setting),
        overview=tables.setting_grid(run),
        foretold=predictions.setting_grid(run),
        levels=sweeps.level_grid(run),
        bin_settings=sweeps.bin_setting_grid(run),
        cuts=sweeps.cut_grid(run),
        unheard=[arm_words(arm) for arm in run.arms(setting) if arm["headline"] is None],
        glossary=GLOSSARY | (inversion.TERMS if inverted else {}),
        command=command(run.result, sweep=run.is_sweep),
        versions=sorted(run.result["versions"].items()),
        plan=yaml.safe_dump(run.plan, sort_keys=False, allow_unicode=True),
        changes=changes(run.result),
    )


def _effort(run: DisclosureRun, setting: str) -> str:
    """Return data, model, numbers of models and seconds in one line."""
    population = run.result["population"]
    sizes = {name: run.value(setting, f"split.{name}") for name in ("seeds", "train_size", "shadows")}
    parts = [f"{run.value(setting, 'model.name')} on {run.value(setting, 'data.name')}"]
    if all(sizes.values()):
        pools = "pool" if sizes["seeds"] == 1 else "pools"
        parts.append(f"{sizes['seeds']} {pools}, each cut into two targets of {sizes['train_size']} points")
        parts.append(f"{sizes['shadows']} shadow models a pool")
    parts.append(
        f"{population['models']} models in all ({population['trained']} trained, {population['reused']} reused)"
    )
    if "seconds" in run.result:
        parts.append(f"{run.result['seconds']:.0f} s")
    return "; ".join(parts) + "."


def _points(run: DisclosureRun, setting: str, images: Images) -> list[dict[str, Any]]:
    """Return the most exposed points, with pictures where the setting asks about the plan's own data set."""
    own = run.value(setting, "data.name") == look_up(run.plan, "data.name")
    return [
        {**point, "image": thumbnail(images[point["point_id"]]) if own and point["point_id"] in images else ""}
        for point in run.rows("points", setting)
    ]
