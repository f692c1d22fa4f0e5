"""A page for each command of ``orch``, with its arguments and options as click has them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from docs.from_code.text import code, literal, page, prose, table
from orchestrator.cli.main import COMMANDS, group

FOLDER = "reference/commands"


def pages() -> dict[str, str]:
    """Return the pages by their place in the documentation."""
    root = click.Context(group, info_name="orch")
    found = {f"{FOLDER}/index.md": overview()}
    for name in COMMANDS:
        command = group.get_command(root, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=root)
        found[f"{FOLDER}/{name}.md"] = page(f"orch {name}", *described(context))
    return found


def overview() -> str:
    """Return the page that lists all commands."""
    rows = [(f"[`orch {name}`]({name}.md)", prose(text)) for name, (_, text) in COMMANDS.items()]
    return page("Commands", text_of(group.help), table(("command", ""), rows))


def described(context: click.Context) -> Iterator[str]:
    """Yield usage, help, options and, with headings of their own, the commands below."""
    command = context.command
    pieces = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{pieces}\n```"
    yield text_of(command.help)
    rows = [row for parameter in command.get_params(context) if (row := option(parameter, context))]
    yield table(("option", ""), rows) if rows else ""
    yield text_of(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                inner = click.Context(below, info_name=name, parent=context)
                yield f"## {inner.command_path}"
                yield from described(inner)


def option(parameter: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    """Return the names of an option and what it does; None for an argument, which the usage shows."""
    record = parameter.get_help_record(context)
    return (code(record[0]), prose(record[1])) if record and record[1] else None


def text_of(text: str | None) -> str:
    r"""Return the help of a command as Markdown; paragraphs that begin with \b keep their lines."""
    blocks = []
    for paragraph in re.split(r"\n\s*\n", (text or "").replace("\f", "\n\n").strip()):
        if paragraph.lstrip().startswith("\b"):
            lines = [literal(line.strip()) for line in paragraph.replace("\b", "").strip().splitlines()]
            blocks.append("<br>\n".join(lines))
        else:
            blocks.append(prose(" ".join(paragraph.split())))
    return "\n\n".join(blocks)
