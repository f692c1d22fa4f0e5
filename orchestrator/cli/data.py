"""``orch data``: the catalogue of data sets, Parquet shards, duplicates."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

import click

from audits.credentials import mask
from audits.data.catalogue import load
from audits.data.duplicates import copy_groups
from audits.data.groups import write_groups
from audits.data.shards import write_shards
from orchestrator.cli.data_sets import data_sets
from orchestrator.cli.options import json_option
from orchestrator.cli.session import Session


@click.group("data")
def command() -> None:
    """List data sets, write one as Parquet shards, or find its duplicates."""


@command.command("ls")
@click.option("--root", type=click.Path(), metavar="DIR", help="Look for the data here (or set ORCH_DATA).")
@json_option
def list_data(root: str | None, as_json: bool) -> None:
    """List the catalogue: what each data set is, where it is looked for, and whether it is there."""
    entries = data_sets(root)
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries]))
        return
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        size = f"{entry.points} points of {'×'.join(map(str, entry.shape))}, " if entry.points else ""
        click.echo(f"{entry.name:{width}}  {entry.state:8}{size}{entry.description}")
        if entry.state == "missing":
            click.echo(f"{'':{width}}          looked for in {', '.join(entry.where)}; {entry.how_to_get}")


@command.command("shard")
@click.argument("name")
@click.argument("out", type=click.Path())
@click.option("--root", type=click.Path(), metavar="DIR", help="Look for the data here (or set ORCH_DATA).")
@click.option("--points", type=click.IntRange(min=1), default=65536, show_default=True, help="Points per shard.")
@click.pass_obj
def shard(session: Session, name: str, out: str, root: str | None, points: int) -> None:
    """Write the data set NAME as Parquet shards into the folder or URI OUT."""
    session.code.said([name, root])
    out = mask(out)
    paths = write_shards(load(name, root), out, points_per_shard=points)
    click.echo(f"wrote {len(paths)} shard{'s' * (len(paths) > 1)} to {out}; use it as data.name: parquet:{out}")


@command.command("duplicates")
@click.argument("name")
@click.argument("file", type=click.Path())
@click.option("--root", type=click.Path(), metavar="DIR", help="Look for the data here (or set ORCH_DATA).")
@click.pass_obj
def duplicates(session: Session, name: str, file: str, root: str | None) -> None:
    """Find exact and near copies in the data set NAME and write FILE (CSV), groups that keep them together.

    All pairs of points are compared: the time grows with the square of their number.
    """
    session.code.said([name, root])
    name = mask(name)
    data = load(name, root)
    click.echo(f"comparing {len(data)} points of {name}", err=True)
    groups = copy_groups(data)
    write_groups(file, groups)
    sizes = Counter(groups.tolist()).values()
    found = [size for size in sizes if size > 1]
    click.echo(
        f"{sum(found)} of {len(groups)} points have copies, in {len(found)} groups of {min(found, default=0)} to "
        f"{max(found, default=0)}; wrote {file}: use it as data.groups: {file}"
    )
