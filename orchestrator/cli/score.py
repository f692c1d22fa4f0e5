"""``orch score``: our statistics on scores from elsewhere."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from orchestrator.cli.gating import ci_options, clear, close_gate, write_for_ci
from orchestrator.cli.lines import say
from orchestrator.cli.options import colour_option, json_option, quiet_option
from orchestrator.engine.kind import load
from orchestrator.engine.run.console import Terminal
from orchestrator.scored.options import AUTO, DEFAULT_PRIORS, Options


@click.command("score")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
@click.option("--member", metavar="COLUMN", default="", help="The truth: 0/1, true/false, member/non-member …")
@click.option("--score", "scores", metavar="COLUMN", multiple=True, help="Scores of an attack; repeatable.")
@click.option("--group", metavar="COLUMN", default="", help="The target model of each row; intervals are then over it.")
@click.option("--point", metavar="COLUMN", default="", help="The point of each row.")
@click.option(
    "--decision", "decisions", metavar="COLUMN", multiple=True, help="An attack’s calls; one for each --score."
)
@click.option("--higher-is-member/--lower-is-member", default=True, help="Whether high or low scores mean a member.")
@click.option("--fpr", "fprs", metavar="RATE", type=float, multiple=True, help="False-positive rate; repeatable.")
@click.option("--prior", "priors", metavar="SHARE", type=float, multiple=True, help="Assumed share of members.")
@click.option("--delta", metavar="δ", type=float, default=Options.delta, show_default=True, help="δ of the bound on ε.")
@click.option("--level", type=float, default=Options.level, show_default=True, help="Confidence of all intervals.")
@click.option("--layout", default=AUTO, show_default=True, help="How files are read: auto, plain, orch, leakpro, "
              "privacy-meter or sacro-ml.")  # fmt: skip
@click.option("--drop-missing", is_flag=True, help="Leave out rows whose score is NaN, or that lack a value or a name.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of halves, pairs and permutations.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the result; none by default.")
@json_option
@quiet_option
@colour_option
@click.option("--fail-above", "limits", metavar="METRIC=VALUE", multiple=True,
              help="Exit with 1 when auc, auc_low, tpr or tpr_low of the worst attack (or ATTACK.METRIC) is above "
              "VALUE; repeatable.")  # fmt: skip
@ci_options
def command(
    files: tuple[Path, ...],
    member: str,
    scores: tuple[str, ...],
    group: str,
    point: str,
    decisions: tuple[str, ...],
    higher_is_member: bool,
    fprs: tuple[float, ...],
    priors: tuple[float, ...],
    delta: float,
    level: float,
    layout: str,
    drop_missing: bool,
    seed: int,
    out: Path | None,
    as_json: bool,
    terse: bool,
    limits: tuple[str, ...],
    junit: Path | None,
    summary: Path | None,
) -> None:
    """Judge scores from elsewhere: AUC, TPR at fixed FPR, intervals, PPV, p-values, a bound on ε, ROC.

    FILE is .csv, .tsv, .parquet, .npz or .json with a row for each point and target. Columns are named by --member and
    --score. Files of LeakPro, ML Privacy Meter, SACRO-ML and of our own runs are read without options. Several files of
    one attack are several targets. Nothing is unpickled.
    """
    options = Options(
        layout=layout,
        member=member,
        scores=scores,
        group=group,
        point=point,
        decisions=decisions,
        higher_is_member=higher_is_member,
        fprs=fprs,
        priors=priors or DEFAULT_PRIORS,
        delta=delta,
        level=level,
        drop_missing=drop_missing,
        seed=seed,
    )
    clear(junit, summary)
    terminal = Terminal(json=as_json, terse=terse)
    words = shlex.join(sys.argv[1:])
    document = load("orchestrator.scored.run:score")(files, options, out, terminal, f"orch {words}", limits)
    if as_json:
        say(json.dumps(document))
    write_for_ci(document, out, junit, summary)
    close_gate(terminal, document)
