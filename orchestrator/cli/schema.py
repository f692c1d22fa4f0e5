"""``orch schema``: JSON Schema of result.json, as it is published in the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from audits.errors import BadInput, did_you_mean
from audits.writing import write_whole
from orchestrator.cli.lines import say
from orchestrator.engine.kind import load

FORMS: Mapping[str, tuple[str, ...]] = {
    "apollo": ("orchestrator.apollo.result.rows:ApolloResult",),
    "tmia": ("orchestrator.tmia.result.rows:TmiaResult", "orchestrator.tmia.result.given_rows:GivenResult"),
    "gnq": ("orchestrator.gnq.result.rows:GnqResult",),
    "mia": ("orchestrator.mia.result.rows:MiaResult",),
    "gnq-target": ("orchestrator.gnq.given.rows:GivenResult",),
    "score": ("orchestrator.scored.rows:ScoreResult",),
    "compare": ("orchestrator.compared.rows:CompareResult",),
}
"""``kind`` of a document → the rows that it is read as."""


def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the kind of a document."""
    return [name for name in FORMS if name.startswith(incomplete)]


@click.command("schema")
@click.argument("kind", required=False, shell_complete=names)
@click.option("--write", type=click.Path(path_type=Path), metavar="DIR", help="Write all schemas again, from the code.")
def command(kind: str | None, write: Path | None) -> None:
    """Print the JSON Schema of result.json of KIND, which the document names in its field `kind`.

    KIND is apollo, tmia, gnq, mia, gnq-target, score, or compare (that of compare.json).
    """
    if write is not None:
        for name in FORMS:
            write_whole(write / f"{name}.json", made(name).encode())
        say(f"wrote {len(FORMS)} schemas into {write}")
        return
    if kind is None:
        raise BadInput(f"name a kind, one of {', '.join(FORMS)}: orch schema apollo")
    if kind not in FORMS:
        raise BadInput(f"no schema of {kind!r}{did_you_mean(kind, FORMS)}; kinds: {', '.join(FORMS)}")
    say(published(kind), nl=False)


def published(kind: str) -> str:
    """Return the schema of a kind as the package holds it."""
    return files("orchestrator").joinpath("schemas", f"{kind}.json").read_text(encoding="utf-8")


def made(kind: str) -> str:
    """Return the schema of a kind as the code has it."""
    forms: tuple[Any, ...] = tuple(load(place) for place in FORMS[kind])
    schema = load("orchestrator.report.json_schema:schema_of")(f"{kind}: a result of orch", forms)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
