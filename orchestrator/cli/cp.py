"""``orch cp``: a shipped plan or sweep as a file to edit."""

from __future__ import annotations

import os
from pathlib import Path

import click

from audits.errors import BadInput, did_you_mean
from audits.writing import write_whole
from orchestrator.cli.completing import plans_and_sweeps
from orchestrator.cli.lines import say
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.engine.run.output_folder import place_of
from tune_spaces import SWEEPS


@click.command("cp")
@click.argument("name", shell_complete=plans_and_sweeps)
@click.argument("file", type=click.Path())
@click.option("--force", is_flag=True, help="Write over FILE if it is there.")
def command(name: str, file: str, force: bool) -> None:
    """Copy the shipped plan NAME (`orch ls plans`), or the shipped sweep file NAME (`orch ls sweeps`), to FILE."""
    text = text_of(name)
    target = Path(file) / f"{name}.yaml" if Path(file).is_dir() else Path(file)
    if os.path.lexists(target) and not force:
        raise BadInput(f"{target} is there already; give another name, or add --force to write over it")
    try:
        write_whole(place_of(target), text.encode())
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {error.strerror}") from None
    say(f"wrote {target}; edit it, then: orch validate {target}")


def text_of(name: str) -> str:
    """Return the text of a shipped plan or sweep file; raises ``BadInput`` when there is none."""
    plans = shipped_plans()
    if name in plans:
        return plans[name]
    files = [each for each in SWEEPS if SWEEPS[each].text]
    if name in files:
        return SWEEPS[name].text
    if name in SWEEPS:
        raise BadInput(f"sweep {name} follows its plan and is no file; sweeps that are files: {', '.join(files)}")
    raise BadInput(
        f"no shipped plan or sweep file {name!r}{did_you_mean(name, [*plans, *files])}; plans: {', '.join(plans)}; "
        f"sweep files: {', '.join(files)}"
    )
