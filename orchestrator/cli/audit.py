"""``orch audit``: one audit from plan to report."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import PLAN_HELP, plan_options, planned, run_options
from orchestrator.cli.session import Session


@click.command("audit", epilog=PLAN_HELP)
@click.argument("kind")
@plan_options
@run_options
@click.option(
    "--fail-above",
    "limits",
    metavar="METRIC=VALUE",
    multiple=True,
    help="Exit with 1 when a number of the result is above VALUE; repeatable. apollo: auc, tpr, found_fpr (worst "
    "label-only attack on an approximate unlearner) or UNLEARNER.ATTACK.METRIC; tmia: precision, auc (worst label-only "
    "attack) or SETTING.SELECTION.ATTACK.METRIC; gnq: auc (strongest attack without defence) or ARM.auc.",
)
@click.pass_obj
def command(
    session: Session,
    kind: str,
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    out: str | None,
    as_json: bool,
    rebuild: bool,
    force: bool,
    limits: tuple[str, ...],
) -> None:
    """Run the audit KIND (apollo, tmia, gnq): train, attack, report.

    Trains what the store does not have, attacks, and writes result.json, scores.parquet, report.html, figures/ and
    plan.yaml into --out. Without PLAN each kind runs a default of its own on data that come with the installation.
    """
    from audits.errors import BadInput
    from orchestrator.kinds import audit_kind

    audit = audit_kind(kind)
    from orchestrator.console import Terminal
    from orchestrator.ending import show_result
    from orchestrator.output_folder import claim_folder

    plan = planned(source or audit.default_plan, overrides, workers, store)
    if plan.kind != kind:
        raise BadInput(f"audit.kind is {plan.kind!r} in the plan, but the audit asked for is {kind!r}")
    audit.refuse_gates(limits, plan)
    folder = Path(out or f"runs/{kind}")
    session.log = claim_folder(folder, plan, force=force)
    terminal = Terminal(session.log, json=as_json)
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)

    from orchestrator.pipeline import run_audit

    document = run_audit(plan, folder, terminal, rebuild=rebuild).to_json()
    show_result(terminal, document, folder)
    if as_json:
        import json

        click.echo(json.dumps(document))
    failed = audit.failed_gates(limits, document, plan)
    for text in failed:
        terminal.line(text)
    if failed:
        raise click.exceptions.Exit(1)
