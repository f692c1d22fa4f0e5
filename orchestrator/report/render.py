"""Write the report of a finished run: figures as SVG and PNG, and one HTML page that needs no network and no script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from orchestrator.plan_split import Split
from orchestrator.report import figures, heat, matrices, privacy, sweeps, writing
from orchestrator.report.budget import budget_curves
from orchestrator.report.by_setting import found_points, grids
from orchestrator.report.exposure import Images, exposure, promises
from orchestrator.report.forget_requests import foretold, request_words
from orchestrator.report.glossary import GLOSSARY, WHO, words
from orchestrator.report.panels import SHADOWS
from orchestrator.report.paper_rule import paper_rule_figure
from orchestrator.report.radii import method_radii
from orchestrator.report.reading import Row, Run, look_up, percent, read_run, small_p
from orchestrator.report.verdict import corrected_p, search_gains, verdict
from orchestrator.report.writing import draw, template

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(out: Path, images: Images | None = None) -> Path:
    """Write ``figures/*.svg|png`` and ``report.html`` under ``out`` from its result.json and scores.parquet.

    ``images``: pixels of points by id, shown beside exposed points (:func:`orchestrator.report.exposure.exposure`).
    Same run, same bytes. Returns the page's path; raises BadInput when the run is not finished.
    """
    run = read_run(out)
    page = out / "report.html"
    page.write_text(_page(run, _draw(run, out / "figures"), images), encoding="utf-8")
    return page


def _draw(run: Run, folder: Path) -> dict[str, str]:
    """Write every figure that the run has something for, and return them as SVG elements by name."""
    makers: dict[str, Callable[[], Figure | None]] = {
        "auc": lambda: figures.forest(run),
        "roc": lambda: figures.roc_curves(run, logarithmic=False),
        "roc_log": lambda: figures.roc_curves(run, logarithmic=True),
        "privacy_utility": lambda: privacy.privacy_utility(run),
        "setting_utility": lambda: privacy.setting_utility(run),
        "transfer": lambda: matrices.transfer_matrix(run),
        "three_way": lambda: matrices.confusions(main_rows(run, "three_way")),
        "budget": lambda: budget_curves(run.result.get("budget") or []),
        "paper_rule": lambda: paper_rule_figure(run.result.get("paper_rule") or []),
        "radius_heat_map": lambda: heat.heat_maps(run.result.get("heatmap") or {}, run.unlearners),
    }
    for attack in sweeps.swept_attacks(run):
        makers[f"sweep_{attack}"] = lambda attack=attack: sweeps.sweep_curves(run, attack)  # type: ignore[misc]  # a default binds the loop's value
    for row in run.result.get("radii") or []:
        makers[f"radii_{row['unlearner']}"] = lambda row=row: method_radii(row)  # type: ignore[misc]  # likewise
    return draw(makers, folder)


def main_rows(run: Run, field: str) -> list[Row]:
    """Return the rows of a list of result.json that belong to the main setting; none where it is missing."""
    return [row for row in run.result.get(field) or [] if row["setting"] == run.main_setting]


def _page(run: Run, svgs: dict[str, str], images: Images | None) -> str:
    """Fill the template."""
    from markupsafe import Markup, escape

    def figure(name: str, caption: str, kind: str = "") -> Markup:
        if name not in svgs:
            return Markup("")
        svg = svgs[name].replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
        return Markup(f'<figure class="{kind}" id="{name}">{svg}<figcaption>{escape(caption)}</figcaption></figure>')

    swept = [name.removeprefix("sweep_") for name in svgs if name.startswith("sweep_")]
    first = run.rows()[0]
    return template("report.html.j2").render(
        result={"warnings": [], **run.result},
        figure=figure,
        verdict=verdict(run),
        audited=_audited(run),
        effort=_effort(run),
        counts=f"{first['targets']} targets, {first['forget']} forgotten and {first['unseen']} unseen points in all.",
        level=f"{run.level * 100:g} %",
        fpr=f"{run.fpr * 100:g} %",
        accesses=_accesses(run),
        gains=_gain_table(run),
        utility=[(name, run.utility(name)) for name in run.unlearners if run.utility(name)["targets"]],
        curves=[(f"sweep_{attack}", attack) for attack in swept],
        sweep_tables=[*grids(run), *(found_points(run) if len(run.result["settings"]) > 1 else [])],
        unlearners=run.unlearners,
        drawn=set(svgs),
        exposure=exposure(run, images),
        promises=promises(run),
        three_way=main_rows(run, "three_way"),
        foretold=foretold(run),
        requests=request_words(run),
        radii=[(row, [(way.upper(), row[way]) for way in ("under", "over")]) for row in run.result.get("radii") or []],
        glossary=GLOSSARY,
        command=command(run),
        versions=sorted(run.result["versions"].items()),
        plan=yaml.safe_dump(run.plan, sort_keys=False, allow_unicode=True),
        settings=writing.changes(run.result),
        words=words,
        three=three,
        share=percent,
        span=span,
        signed=lambda value: f"{value:+.3f}".replace("-", "−"),
        small_p=small_p,
        pvalue=lambda row: small_p(corrected_p(row)),
        missed=lambda row: not row["found_fpr_low"] <= run.fpr <= row["found_fpr_high"],
    )


def three(value: float | None) -> str:
    """Return a number with three digits behind the point, a dash where there is none."""
    return "–" if value is None else f"{value:.3f}"


def span(row: Row, name: str, hundredths: bool = False) -> str:
    """Return ``[low, high]`` of a table row's field, a dash where the result does not hold it."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None:
        return "–"
    return f"[{low * 100:.1f}, {high * 100:.1f}]" if hundredths else f"[{low:.3f}, {high:.3f}]"


def command(run: Run) -> str:
    """Return the command that repeats the run: the result's own, else from the plan beside the report."""
    if "command" in run.result:
        return str(run.result["command"])
    return writing.command(run.result, sweep=len(run.result["settings"]) > 1)


def _audited(run: Run) -> str:
    plan = run.plan
    methods = ", ".join(words(name) for name in run.unlearners)
    parts = [f"{look_up(plan, 'model.name')} on {look_up(plan, 'data.name')}", f"unlearned by {methods}"]
    if shadows := look_up(plan, "shadow_model.name"):
        parts.append(f"attacked with shadows of {shadows}")
    split = {name: look_up(plan, f"split.{name}") for name in ("forget", "train_size")}
    if all(split.values()):
        parts.append(f"{Split.model_validate_json(json.dumps(split)).forget_words()} forgotten")
    return "; ".join(parts) + "."


def _effort(run: Run) -> str:
    models = run.result.get("population", {})
    shadows = look_up(run.plan, SHADOWS) or look_up(run.plan, "split.shadows")
    parts = [f"{run.rows()[0]['targets']} target models", f"{shadows} shadow models per set" if shadows else ""]
    if models:
        parts.append(f"{models['models']} models in all ({models['trained']} trained, {models['reused']} reused)")
    parts.append(f"{run.result['seconds']:.0f} s")
    return "; ".join(part for part in parts if part) + "."


def _accesses(run: Run) -> list[dict[str, Any]]:
    """Return the main table grouped by what the attacker must see, then by unlearner."""
    rows = run.rows()
    groups = []
    for access in run.accesses:
        blocks = [
            {"name": words(name), "rows": [r for r in rows if r["access"] == access and r["unlearner"] == name]}
            for name in run.unlearners
        ]
        filled = [block for block in blocks if block["rows"]]
        groups.append(
            {"title": words(access), "who": WHO.get(access, "see the attack’s description."), "blocks": filled}
        )
    return groups


def _gain_table(run: Run) -> dict[str, Any] | None:
    """Return paired differences as a table of unlearners × (attack, reference)."""
    gains = search_gains(run)
    columns = list(dict.fromkeys((gain.attack, gain.reference) for gain in gains))
    found = {(gain.unlearner, gain.attack, gain.reference): gain for gain in gains}
    rows = [(name, [found.get((name, *column)) for column in columns]) for name in run.unlearners]
    return {"columns": columns, "rows": rows} if gains else None
