"""``orch report``: the report of a finished run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from orchestrator.kinds import AuditKind


@click.command("report")
@click.argument("run", type=click.Path())
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown instead; nothing is written.")
def command(run: str, markdown: bool) -> None:
    """Write report.html and figures/ of the folder RUN again, from its result.json and scores.parquet."""
    from audits.errors import BadInput

    folder = Path(run)
    missing = [name for name in ("result.json", "scores.parquet") if not (folder / name).is_file()]
    if missing:
        raise BadInput(
            f"{folder} has no {' and no '.join(missing)}; give the --out folder of a finished audit or sweep"
        )
    from orchestrator.kinds import audit_kind
    from orchestrator.report.reading import read_result

    document = read_result(folder)
    kind = audit_kind(str(document["kind"]))
    if markdown:
        click.echo(kind.markdown(folder), nl=False)
        return
    kind.report(folder, thumbnails(kind, document))
    click.echo(f"wrote {folder / 'report.html'}")


def thumbnails(kind: AuditKind, document: dict[str, Any]) -> Any:
    """Return the images of the points that the page lists, by id; none where the data are not here."""
    from audits.data.catalogue import load
    from audits.errors import BadInput

    if not any(document.get(field) for field in ("exposed", "points")):
        return {}
    try:
        return kind.images(document, load(document["plan"]["data"]["name"], document["plan"]["data"].get("root")))
    except BadInput as error:
        click.echo(f"without thumbnails: {error}", err=True)
        return {}
