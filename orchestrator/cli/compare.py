"""``orch compare``: which differences between finished runs are statistically significant."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from orchestrator.cli.lines import say
from orchestrator.cli.options import colour_option, json_option, quiet_option
from orchestrator.engine.kind import load
from orchestrator.engine.run.console import Terminal


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option("--setting", "settings", metavar="NAME", multiple=True, help="Compare settings of one RUN; repeatable.")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="auc, tpr, fpr or precision; all by default.")
@click.option("--attack", "attacks", metavar="NAME", multiple=True, help="An attack that both have; all by default.")
@click.option(
    "--match",
    "matches",
    metavar="A=B",
    multiple=True,
    help="Compare method (or attack, setting) A of the first RUN with B of the others; repeatable.",
)
@click.option("--all-pairs", is_flag=True, help="Compare all with all, not the others with the first.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of all intervals.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder of page and compare.json.")
@json_option
@quiet_option
@colour_option
def command(
    runs: tuple[Path, ...],
    settings: tuple[str, ...],
    metrics: tuple[str, ...],
    attacks: tuple[str, ...],
    matches: tuple[str, ...],
    all_pairs: bool,
    level: float,
    out: Path | None,
    as_json: bool,
    terse: bool,
) -> None:
    """Find statistically significant differences between finished runs: the others minus the first RUN.

    RUN is the --out folder of an audit, a sweep or `orch score`. Differences are paired where runs share targets or
    points, and corrected for their number. Only differences whose interval lets shadow models vary can be significant.
    """
    terminal = Terminal(json=as_json, terse=terse)
    document = load("orchestrator.compared.run:compare")(
        runs,
        settings=settings,
        metrics=metrics,
        attacks=attacks,
        matches=matches,
        level=level,
        all_pairs=all_pairs,
        out=out,
        terminal=terminal,
        command=f"orch {shlex.join(sys.argv[1:])}",
    )
    if as_json:
        say(json.dumps(document))
