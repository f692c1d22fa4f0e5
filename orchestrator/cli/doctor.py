"""``orch doctor``: what is wrong with this machine and how to fix it."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from orchestrator.cli.diagnosis import diagnose
from orchestrator.cli.options import json_option


@click.command("doctor")
@click.option("--store", metavar="URI", help="The store to look at (ORCH_STORE, else .orch/store).")
@click.option("--out", type=click.Path(), default="runs", metavar="DIR", help="The folder that results go to.")
@json_option
def command(store: str | None, out: str, as_json: bool) -> None:
    """Check Python, torch, Ray, GPUs, memory, disk, data sets, store and tracking.

    One line each: ok, warn or FAIL, with what to do. Exit code 3 if anything fails.
    """
    findings = diagnose(store, out)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            fix = f" → {finding.fix}" if finding.fix else ""
            click.echo(f"{finding.status:4}  {finding.subject}: {finding.found}{fix}")
    if any(finding.status == "FAIL" for finding in findings):
        raise click.exceptions.Exit(3)
