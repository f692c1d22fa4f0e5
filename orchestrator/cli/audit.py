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
    help="Exit with 1 when auc, tpr, found_fpr (worst label-only attack on an approximate unlearner) or "
    "UNLEARNER.ATTACK.METRIC is above VALUE; repeatable.",
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
    """Run the audit KIND (apollo): train, unlearn, attack, report.

    Trains and unlearns what the store does not have, attacks, and writes result.json, scores.parquet, report.html,
    figures/ and plan.yaml into --out.
    """
    from audits.errors import BadInput, did_you_mean
    from orchestrator.listing import AUDITS

    if kind not in AUDITS:
        raise BadInput(f"no audit {kind!r}{did_you_mean(kind, AUDITS)}; audits: {', '.join(AUDITS)}")
    from orchestrator.console import Terminal
    from orchestrator.ending import show_result
    from orchestrator.gate import check_gates, failures, parse_gate
    from orchestrator.output_folder import claim_folder

    gates = [parse_gate(text) for text in limits]
    plan = planned(source, overrides, workers, store)
    if plan.audit.kind != kind:
        raise BadInput(f"audit.kind is {plan.audit.kind!r} in the plan, but the audit asked for is {kind!r}")
    check_gates(gates, plan)
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
    failed = failures(gates, document["table"], plan)
    for text in failed:
        terminal.line(text)
    if failed:
        raise click.exceptions.Exit(1)
