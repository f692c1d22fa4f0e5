"""``orch data``: the catalogue of data sets, shards, duplicates."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click

from audits.credentials import mask
from audits.data.catalogue import encoded, load
from audits.data.duplicates import copy_groups
from audits.data.file_sets import EncodedSet
from audits.data.groups import write_groups
from audits.data.image_shards import verify
from audits.data.shard_manifest import Manifest, is_image_shards
from audits.data.sharding import IMAGES_PER_SHARD, write_image_shards
from audits.data.shards import POINTS_PER_SHARD, read_shards, write_shards
from audits.errors import BadInput
from audits.home import expanded
from audits.processors import usable_cpus
from orchestrator.cli.data_sets import DataSet, data_sets
from orchestrator.cli.lines import described, say
from orchestrator.cli.listing import plain
from orchestrator.cli.options import json_option
from orchestrator.cli.session import Session
from orchestrator.engine.run.output_folder import place_of


@click.group("data")
def command() -> None:
    """List data sets, write and verify shards, or find duplicates."""


@command.command("ls")
@click.option("--root", type=click.Path(), metavar="DIR", help="Look for the data here (or set ORCH_DATA).")
@json_option
def list_data(root: str | None, as_json: bool) -> None:
    """List the catalogue: what each data set is, where it is looked for, and whether it is there."""
    entries = data_sets(root)
    if as_json:
        say(json.dumps([asdict(entry) for entry in entries]))
        return
    for line in described([(entry.name, entry_in_words(entry)) for entry in entries]):
        say(line)


def entry_in_words(entry: DataSet) -> str:
    """Return the state of a data set, its size, what it is, and how to get it."""
    size = f"{entry.points} points of {'×'.join(map(str, entry.shape))}, " if entry.points else ""
    text = f"{entry.state:8}{size}{plain(entry.description)}"
    return f"{text}; looked for in {', '.join(entry.where)}; {entry.how_to_get}" if entry.state == "missing" else text


@command.command("shard")
@click.argument("name")
@click.argument("out", type=click.Path())
@click.option("--root", type=click.Path(), metavar="DIR", help="Look for the data here (or set ORCH_DATA).")
@click.option("--points", type=click.IntRange(min=1), help="Points a shard: 2048 images, or 65536 with pixels.")
@click.option("--pixels", is_flag=True, help="Decode images and write their pixels (Parquet).")
@click.option("--workers", type=click.IntRange(min=1), help="Processes that pack images: as many as CPUs.")
@click.pass_obj
def shard(
    session: Session, name: str, out: str, root: str | None, points: int | None, pixels: bool, workers: int | None
) -> None:
    """Write the data set NAME as shards into the folder OUT.

    Images in files are packed into tar files as they are, by several processes; given again after an interruption, the
    command goes on. Points of other sets, and pixels, go into Parquet files; then OUT may be a URI.
    """
    session.permission.said([name, root])
    out = mask(out)
    images = None if pixels else encoded(name, root)
    if images is None:
        data = load(name, root)
        say_left_out(data.notes)
        paths = write_shards(data, out, points_per_shard=points or POINTS_PER_SHARD)
        count, form = len(paths), "parquet"
    elif "://" in out:
        raise BadInput(f"{out} is not a folder of this machine, which images need; add --pixels, or name a folder")
    else:
        folder = expanded(out)
        count = len(_packed(images, folder, points or IMAGES_PER_SHARD, workers or usable_cpus()).shards)
        form = "shards"
    say(f"wrote {count} shard{'s' * (count > 1)} to {out}; use it as data.name: {form}:{out}")


def say_left_out(notes: tuple[str, ...]) -> None:
    """Print what reading a data set left out."""
    for note in notes:
        say(note, err=True)


def _packed(images: EncodedSet, folder: Path, points: int, workers: int) -> Manifest:
    """Pack images, saying now and then how many shards are there."""

    def report(done: int, parts: int) -> None:
        if done == parts or done % max(1, parts // 10) == 0:
            say(f"{done} of {parts} shards are there", err=True)

    say_left_out(images.notes)
    say(f"packing {len(images.labels)} images into {folder}", err=True)
    return write_image_shards(images, folder, per_shard=points, workers=workers, told=report)


@command.command("verify")
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--decode", is_flag=True, help="Decode every image too.")
def verify_shards(folder: str, decode: bool) -> None:
    """Read all shards in DIR, tar or Parquet, and compare them with the checksums that they were written with."""
    folder = mask(folder)
    if "://" in folder or not is_image_shards(expanded(folder)):
        say(f"{folder}: {len(read_shards(folder, folder))} points, all as they were written")
        return
    found = verify(expanded(folder), decode)
    shards = f"{len(found.shards)} shard{'s' * (len(found.shards) > 1)}"
    say(f"{folder}: {found.points} images in {shards}, all as they were written{' and readable' * decode}")


@command.command("duplicates")
@click.argument("name")
@click.argument("file", type=click.Path())
@click.option("--root", type=click.Path(), metavar="DIR", help="Look for the data here (or set ORCH_DATA).")
@click.pass_obj
def duplicates(session: Session, name: str, file: str, root: str | None) -> None:
    """Find exact and near copies in the data set NAME and write FILE (CSV), groups that keep them together.

    All pairs of points are compared: the time grows with the square of their number.
    """
    session.permission.said([name, root])
    name = mask(name)
    data = load(name, root)
    say(f"comparing {len(data)} points of {name}", err=True)
    groups = copy_groups(data)
    write_groups(str(place_of(expanded(file))), groups)
    sizes = Counter(groups.tolist()).values()
    found = [size for size in sizes if size > 1]
    say(
        f"{sum(found)} of {len(groups)} points have copies, in {len(found)} groups of {min(found, default=0)} to "
        f"{max(found, default=0)}; wrote {file}: use it as data.groups: {file}"
    )
