"""The files for CI of a command that did not finish: the error takes the place of the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.gating import leave_error
from orchestrator.cli.session import Session


def leave_for_ci(group: click.Group, arguments: Sequence[str], message: str, code: int) -> None:
    """Write ``message`` and the exit ``code`` into the files that the command line names by --junit and --summary.

    A file that cannot be written, or that orch has not written, is left as it is.
    """
    command, files = files_of(group, arguments)
    leave_error(f"orch {command}", message, code, files.get("junit"), files.get("summary"))


def files_of(group: click.Group, arguments: Sequence[str]) -> tuple[str, dict[str, Path]]:
    """Return the subcommand of a command line and its files for CI by option, also where the line is refused."""
    with click.Context(group, info_name="orch", resilient_parsing=True) as root:
        name, *rest = list(arguments) or [""]
        values = read(group.get_command(root, name), root, name, rest)
        if words := values.get("words"):  # of orch submit
            inner, found = files_of(group, words)
            return f"{name} {inner}", found
    return name, {key: values[key] for key in ("junit", "summary") if isinstance(values.get(key), Path)}


def read(command: click.Command | None, root: click.Context, name: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the values of a subcommand's parameters, without those that are wrong; {} without such a command."""
    if command is None:
        return {}
    settings = {**command.context_settings, "ignore_unknown_options": True}
    context = click.Context(
        command,
        root,
        info_name=name,
        resilient_parsing=True,
        obj=Session(),  # what these words allow was asked for already
        **settings,
    )
    with context:
        command.parse_args(context, list(words))
    return dict(context.params)
