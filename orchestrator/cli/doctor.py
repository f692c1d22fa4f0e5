"""``orch doctor``: what is wrong with this machine or with a cluster, and how to fix it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from audits.errors import BadInput
from orchestrator.cli.cluster_diagnosis import ask_cluster, judge, table
from orchestrator.cli.diagnosis import Finding, diagnose
from orchestrator.cli.lines import say, wrapped
from orchestrator.cli.options import allow_options, json_option, said_of, set_option
from orchestrator.kinds import load_plan


@click.command("doctor")
@click.option(
    "--store",
    metavar="URI",
    callback=said_of("compute.store"),
    help="The store to look at (ORCH_STORE, else .orch/store).",
)
@click.option("--out", type=click.Path(), default="runs", metavar="DIR", help="The folder that results go to.")
@click.option("--cluster", is_flag=True, help="Check every node of a Ray cluster in place of this machine.")
@set_option
@allow_options
@json_option
@click.argument("source", metavar="[PLAN]", required=False)
def command(
    store: str | None, out: str, cluster: bool, overrides: tuple[str, ...], as_json: bool, source: str | None
) -> None:
    """Check Python, torch, Ray, GPUs, memory, disk, data sets, store and tracking.

    With --cluster every living node is asked for its versions, devices, clock and disk, and whether it reaches the
    other nodes, the store and the data of PLAN (--set compute.address=…, compute.store=… as in a run). Of each finding:
    ok, warn or FAIL, and what to do. Exit code 3 if anything fails.
    """
    if not cluster:
        if source or overrides:
            raise BadInput("PLAN and --set are for the cluster of a run: orch doctor --cluster PLAN --set …")
        conclude(diagnose(store, out), as_json)
        return
    plan = load_plan(source, overrides, {} if store is None else {"compute.store": store})
    driver, answers = ask_cluster(plan)
    if not as_json:
        say(table(answers))
    conclude(judge(driver, answers), as_json)


def conclude(findings: Sequence[Finding], as_json: bool) -> None:
    """Print the findings; raise Exit with 3 if anything fails."""
    if as_json:
        say(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            fix = f" → {finding.fix}" if finding.fix else ""
            for line in wrapped(f"{finding.status:4}  ", f"{finding.subject}: {finding.found}{fix}"):
                say(line)
    if any(finding.status == "FAIL" for finding in findings):
        raise click.exceptions.Exit(3)
