"""``orch ls``: what there is to name in a plan or on the command line."""

from __future__ import annotations

import click

from orchestrator.cli.options import json_option

KINDS = ("audits", "attacks", "unlearners", "models", "data", "sweeps", "plans")


@click.command("ls")
@click.argument("kind", type=click.Choice(KINDS))
@json_option
def command(kind: str, as_json: bool) -> None:
    """List what there is of a KIND, one line each, with what it is."""
    from orchestrator.listing import listing

    rows = listing(kind)
    if as_json:
        import json

        click.echo(json.dumps([{"name": name, "description": text} for name, text in rows]))
        return
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        click.echo(f"{name:{width}}  {text}".rstrip())
