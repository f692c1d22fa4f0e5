"""``orch cp``: a shipped plan as a file to edit."""

from __future__ import annotations

from pathlib import Path

import click

from audits.errors import BadInput
from orchestrator.engine.plan.files import shipped_text


@click.command("cp")
@click.argument("plan")
@click.argument("file", type=click.Path())
@click.option("--force", is_flag=True, help="Write over FILE if it is there.")
def command(plan: str, file: str, force: bool) -> None:
    """Copy the shipped plan PLAN (`orch ls plans`) to FILE."""
    text = shipped_text(plan)
    target = Path(file) / f"{plan}.yaml" if Path(file).is_dir() else Path(file)
    if target.exists() and not force:
        raise BadInput(f"{target} is there already; give another name, or add --force to write over it")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {error.strerror}") from None
    click.echo(f"wrote {target}; edit it, then: orch validate {target}")
