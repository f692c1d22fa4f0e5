"""``orch ls``: what there is to name in a plan or on the command line."""

from __future__ import annotations

import dataclasses
import json

import click

from audits.errors import BadInput, did_you_mean
from orchestrator.cli.completing import lists as names_of_lists
from orchestrator.cli.known_kinds import LISTS
from orchestrator.cli.lines import described, say
from orchestrator.cli.listing import OF_ALL, layered_models, listing, lists
from orchestrator.cli.options import json_option


def known(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return ``value`` if there is a list of it; audits are imported only where no other list has that name."""
    if value is not None and value not in OF_ALL and value not in (names := lists()):
        raise click.BadParameter(f"no list of {value!r}{did_you_mean(value, names)}; lists: {', '.join(names)}", ctx)
    return value


@click.command("ls")
@click.argument("kind", required=False, callback=known, shell_complete=names_of_lists)
@click.option("--layers", is_flag=True, help="With models: the numbered layers that transfer.n_frozen counts.")
@json_option
def command(kind: str | None, layers: bool, as_json: bool) -> None:
    """List what there is of a KIND by name, with what it is.

    KIND is audits, models, data, sweeps, plans, or what audits choose from: attacks, unlearners, selectors, rankings.
    """
    if kind is None:
        raise BadInput(f"name a list, one of {', '.join(LISTS)}: orch ls plans")
    if layers:
        show_layers(kind, as_json)
        return
    rows = listing(kind)
    if as_json:
        say(json.dumps([{"name": name, "description": text} for name, text in rows]))
        return
    for line in described(rows):
        say(line)


def show_layers(kind: str, as_json: bool) -> None:
    """Print every architecture and, below it, number, name and parameters of each of its layers."""
    if kind != "models":
        raise BadInput(f"--layers lists the layers of models, not of {kind}; use `orch ls models --layers`")
    models = layered_models()
    if as_json:
        say(json.dumps([dataclasses.asdict(model) for model in models]))
        return
    for model in models:
        if model.problem:
            say(f"{model.name}  {model.problem}")
            continue
        sides = "×".join(str(length) for length in model.shape)
        points = f"{sides} images" if len(model.shape) == 3 else f"texts of {sides} tokens"
        last = len(model.layers) - 1
        say(f"{model.name}  default settings, {points}, {model.classes} classes; n_frozen 0 to {last}")
        names = max(len(row.name) for row in model.layers)
        kinds = max(len(row.kind) for row in model.layers)
        for row in model.layers:
            say(f"  {row.number:>2}  {row.name:{names}}  {row.kind:{kinds}}  {row.parameters:>11,}")
