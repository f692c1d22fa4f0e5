"""``orch report``: the report of a finished run, written again."""

from __future__ import annotations

from pathlib import Path

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

    write_report(folder)
    click.echo(f"wrote {folder / 'report.html'}")
