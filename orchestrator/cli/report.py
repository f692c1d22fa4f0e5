"""``orch report``: the report of a finished run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


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
    if markdown:
        from orchestrator.report.markdown import markdown as tables
        from orchestrator.report.reading import read_run

        click.echo(tables(read_run(folder)), nl=False)
        return
    from orchestrator.report.render import write_report

    write_report(folder, thumbnails(folder))
    click.echo(f"wrote {folder / 'report.html'}")


def thumbnails(folder: Path) -> dict[int, Any]:
    """Return the images of the points that the page lists, by id; none where no point is, or the data are not here."""
    from audits.data.catalogue import load
    from audits.errors import BadInput
    from orchestrator.report.exposure import shown_images
    from orchestrator.report.reading import read_run

    run = read_run(folder)
    exposed = run.result.get("exposed") or {}
    if not exposed.get("points"):
        return {}
    try:
        return shown_images(exposed, load(run.plan["data"]["name"], run.plan["data"].get("root")))
    except BadInput as error:
        click.echo(f"without thumbnails: {error}", err=True)
        return {}
