"""``orch audit``: one audit from plan to report."""

from __future__ import annotations

import json
from pathlib import Path

import click

from orchestrator.cli.beginning import begin
from orchestrator.cli.completing import kinds
from orchestrator.cli.completing import limits as metrics
from orchestrator.cli.gating import ci_options, clear, close_gate, write_for_ci
from orchestrator.cli.known_kinds import metrics_help
from orchestrator.cli.lines import say
from orchestrator.cli.options import (
    PLAN_HELP,
    log_models_option,
    plan_options,
    planned,
    run_options,
    target_options,
    with_target,
)
from orchestrator.cli.session import Session
from orchestrator.engine.run.output_folder import usual_folder
from orchestrator.engine.run.run import run_audit
from orchestrator.engine.run.summary import show_result
from orchestrator.judgement.gate import gates_of
from orchestrator.kinds import kind_named


@click.command("audit", epilog=f"{PLAN_HELP}\n\n{metrics_help()}")
@click.argument("kind", shell_complete=kinds)
@plan_options
@target_options
@run_options
@click.option(
    "--fail-above",
    "limits",
    metavar="METRIC=VALUE",
    multiple=True,
    shell_complete=metrics,
    help="Exit with 1 when a number of the result is above VALUE, or when a failed control or attack leaves that open; "
    "repeatable. METRIC alone (auc) is that of the worst line (apollo, tmia: of attacks that see predicted classes "
    "alone), with an access before it (labels.auc) that of the worst line within this access, with names "
    "(scrub.apollo.auc) that of one line; all are listed below.",
)
@log_models_option
@ci_options
@click.pass_obj
def command(
    session: Session,
    kind: str,
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    targets: tuple[str, ...],
    members: str | None,
    out: str | None,
    as_json: bool,
    no_pictures: bool,
    aggregate_only: bool,
    rebuild: bool,
    force: bool,
    terse: bool,
    limits: tuple[str, ...],
    log_models: str | None,
    junit: Path | None,
    summary: Path | None,
) -> None:
    """Run the audit KIND (`orch ls audits`): train, attack, report.

    Trains what the store does not have, attacks, and writes result.json, scores.parquet, report.html, figures/ and
    plan.yaml into --out. Without PLAN each kind runs a default of its own on data that come with the installation.
    With --target a model of yours is audited, and never trained.
    """
    asked = with_target(kind, source, overrides, targets, members)
    plan = planned(*asked, workers, store, kind=kind, log_models=log_models)
    audit = kind_named(plan.kind)
    gates = gates_of(limits, audit.headline, plan)
    folder = Path(out) if out else usual_folder(kind)
    clear(junit, summary)
    terminal, claim = begin(session, folder, plan, as_json=as_json, force=force, terse=terse)
    kept = {"pictures": not no_pictures, "aggregate_only": aggregate_only}
    found = run_audit(audit, plan, folder, terminal, rebuild=rebuild, gates=gates, claim=claim, **kept)
    document = found.to_json()
    show_result(terminal, audit, document, folder)
    if as_json:
        say(json.dumps(document))
    write_for_ci(document, folder, junit, summary)
    close_gate(terminal, document)
