"""The command ``orch``: a table of subcommands, each imported only when it is asked for, and the exit codes."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from actors.environment import environment
from actors.interrupts import end_as_by_ctrl_c, end_by_default, exit_code, told_to_end
from audits.credentials import hide, mask
from audits.errors import BadInput, ServerSilent, did_you_mean
from audits.own.import_path import SAFE
from audits.own.permission import asking
from audits.writing import CannotWrite, opened_to_append
from orchestrator.cli.lines import say
from orchestrator.cli.session import Session
from orchestrator.engine.media import shortened, terminal
from orchestrator.engine.plan import reach
from orchestrator.engine.run.room import OutOfMemory
from orchestrator.engine.run.streams import open_what_is_closed, unless_gone, write_what_can_be_written
from orchestrator.engine.store.faults import FULL, CorruptArtefact, StoreFull, StoreSilent

DONE, GATE_FAILED, BAD_INPUT, BROKE, PIPE_CLOSED = 0, 1, 2, 3, 141

# name → (module, help): `orch --help` reads this table and imports none of them.
COMMANDS = {
    "audit": ("orchestrator.cli.audit", "Run one audit: train, unlearn, attack, report."),
    "sweep": ("orchestrator.cli.sweep", "Run a sweep of audits over one shared population."),
    "tune": ("orchestrator.cli.tune", "Choose settings of an attack without asking a target, then audit with them."),
    "cost": ("orchestrator.cli.cost", "Estimate what a plan costs; run nothing."),
    "new": ("orchestrator.cli.new", "Write a small plan by questions or options."),
    "validate": ("orchestrator.cli.validate", "Check a plan or a sweep and list everything that is wrong with it."),
    "ls": ("orchestrator.cli.ls", "List audits, attacks, unlearners, models, data, sweeps or plans."),
    "check": ("orchestrator.cli.check", "Run the contract tests of a component of your own."),
    "cp": ("orchestrator.cli.cp", "Copy a shipped plan or sweep to a file, to edit it."),
    "submit": ("orchestrator.cli.submit", "Run an audit or a sweep on a Ray cluster, and fetch its results."),
    "score": ("orchestrator.cli.score", "Judge scores from elsewhere by the statistics of our audits."),
    "compare": ("orchestrator.cli.compare", "Say which differences between finished runs are real."),
    "report": ("orchestrator.cli.report", "Write the report of a finished run again."),
    "schema": ("orchestrator.cli.schema", "Print the JSON Schema of result.json."),
    "cache": ("orchestrator.cli.cache", "Look into the store of finished models and scores, and clean it."),
    "verify": ("orchestrator.cli.verify", "Make some of a run's models and scores once more, and compare."),
    "data": ("orchestrator.cli.data", "List data sets, or write one as Parquet shards."),
    "completion": ("orchestrator.cli.completion", "Print the completion script of a shell: bash, zsh, fish."),
    "doctor": ("orchestrator.cli.doctor", "Check this machine: what is wrong and how to fix it."),
}

RENAMED = {"plan": "cost"}


class LazyGroup(click.Group):
    """A click group that imports a subcommand's module when the subcommand is run, or its help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the object named ``command`` of the subcommand's module."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown subcommand with the closest match."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = f"; it is now called {RENAMED[args[0]]!r}" if args[0] in RENAMED else did_you_mean(args[0], COMMANDS)
            raise click.UsageError(f"no command {args[0]!r}{near}; commands: {', '.join(COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete subcommands by the table, importing none, and options."""
        found = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def show_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Print the installed version and stop."""
    if value:
        try:
            say(f"orch {metadata.version('orch-audit')}")
        except metadata.PackageNotFoundError:
            say("orch (not installed)")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--version", is_flag=True, callback=show_version, expose_value=False, is_eager=True, help="Show the version."
)
def group() -> None:
    """Audit what trained models give away about the data that they were trained on, or were made to forget.

    Every command runs its embedded default on data that comes with the package when no PLAN is given.
    Exit codes: 0 done, 1 a gate failed (--fail-above) or a store is not what it says (verify), 2 bad input, 3 something
    broke.
    """


def main(argv: list[str] | None = None) -> int:
    """Run ``orch`` and return its exit code; whatever goes wrong is one line on standard error."""
    session = Session()
    open_what_is_closed()
    write_what_can_be_written(sys.stdout)
    warnings.filterwarnings(
        "ignore", r"Image size \(\d+ pixels\) exceeds limit"
    )  # such an image is refused in one line
    arguments = sys.argv[1:] if argv is None else argv
    mask(list(arguments))  # so that messages know what to hide
    if argv is None:
        end_as_by_ctrl_c()
    try:
        if instruction := os.environ.get("_ORCH_COMPLETE"):
            return complete(instruction)
        permission = session.permission
        with environment(SAFE), asking(permission.may_run), reach.asking(permission.refused):
            code = invoke(arguments, session)
        if argv is None:
            print_the_rest()
            ignore_interrupts()
        return code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message(), err=True)
        return BAD_INPUT
    except BrokenPipeError:
        close_stdout()
        leave_for_ci(arguments, "the reader of standard output is gone", PIPE_CLOSED)
        return PIPE_CLOSED
    except (KeyboardInterrupt, click.Abort):
        return stopped(session, arguments, end=argv is None)
    except Exception as error:
        if told_to_end():  # the terminal may be gone, and so what the command wrote to
            return stopped(session, arguments, end=argv is None)
        if os.environ.get("ORCH_DEBUG") == "1":
            raise
        text, code = explained(error, session)
        complain(text)
        leave_for_ci(arguments, text, code)
        return code


def stopped(session: Session, arguments: Sequence[str], *, end: bool) -> int:
    """Say that the command is interrupted and return its exit code, or ``end`` the process with it."""
    began = session.log is not None
    text = f"stopped{'; finished models are kept; run the same command again to go on' if began else ''}"
    complain(text)
    leave_for_ci(arguments, text, exit_code())
    if end:
        end_at_once()
    return exit_code()


def complete(instruction: str) -> int:
    """Answer a shell that completes a command line; what goes wrong is no text in the midst of it."""
    with contextlib.suppress(Exception):
        say(importlib.import_module("orchestrator.cli.shells").answer(instruction, group))
        return DONE
    return BROKE


def print_the_rest() -> None:
    """Write what is still to be printed; to a terminal that is gone nothing, or Python itself would fail at its end."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        close_stdout()


def ignore_interrupts() -> None:
    """Let a command that is over end with its own exit code.

    The interpreter may take seconds to end, without a handler of signals: an interrupt would kill it.
    """
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_by_default()


def end_at_once() -> NoReturn:
    """End an interrupted process without the interpreter's own clean-up.

    That takes up to ten seconds on a busy machine, and Ray's threads crash in it (exit code 139) where a second Ctrl-C
    broke off Ray's start.
    """
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(exit_code())


def invoke(arguments: list[str], session: Session) -> int:
    """Run a command line without click's own handling of errors and return the exit code that it asked for."""
    try:
        with group.make_context("orch", list(arguments), obj=session) as context:
            group.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return DONE


def explained(error: Exception, session: Session) -> tuple[str, int]:
    """Return one line about ``error`` and the exit code; a traceback goes to a log file that the line names."""
    if isinstance(error, click.ClickException):
        return f"{error.format_message()}{elsewhere(error)}{see_help(error)}", BAD_INPUT
    if isinstance(error, BadInput | CannotWrite):
        return str(error), BAD_INPUT
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{shortened(str(error.filename), 300)}: too long for the name of a file; give a shorter one", BAD_INPUT
    return f"{first_line(error)} (log: {write_traceback(error, session.log)})", BROKE


def leave_for_ci(arguments: Sequence[str], text: str, code: int) -> None:
    """Write why a command did not finish into the files for CI that its command line names, if any."""
    if any(word.partition("=")[0] in ("--junit", "--summary") for word in arguments):
        unfinished = importlib.import_module("orchestrator.cli.unfinished")
        unfinished.leave_for_ci(group, arguments, one_line(text), code)


def elsewhere(error: click.ClickException) -> str:
    """Return which other commands have an option that this one lacks."""
    if not isinstance(error, click.NoSuchOption):
        return ""
    commands = {name: importlib.import_module(module).command for name, (module, _) in COMMANDS.items()}
    have = [
        name for name, command in commands.items() if any(error.option_name in each.opts for each in command.params)
    ]
    return f" {error.option_name} belongs to {', '.join(f'orch {name}' for name in have)}" if have else ""


def see_help(error: click.ClickException) -> str:
    """Return where the usage is explained."""
    context = getattr(error, "ctx", None)
    return f" (see `{context.command_path} --help`)" if context else ""


def first_line(error: Exception, limit: int = 300) -> str:
    """Return what broke on one line of at most ``limit`` characters; unexpected kinds are named."""
    text = next(iter(str(error).strip().splitlines()), "")[:limit]
    if isinstance(error, CorruptArtefact | OutOfMemory | ServerSilent | StoreFull | StoreSilent):
        return text
    if isinstance(error, OSError) and error.errno in FULL:
        where = f" ({error.filename})" if error.filename else ""
        return f"disk full{where}; nothing finished is lost; free space and run the same command again"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def write_traceback(error: Exception, log: Path | None) -> str:
    """Append the traceback to ``log`` (None or unwritable: to a new temporary file) and return the file's name."""
    text = hide(f"\n{time.strftime('%Y-%m-%d %H:%M:%S')}\n{''.join(traceback.format_exception(error))}")
    if log is not None:
        try:
            with open(opened_to_append(log), "a", encoding="utf-8") as file:
                file.write(text)
            return str(log)
        except OSError:
            text += f"\n(the log {log} could not be written)\n"
    descriptor, name = tempfile.mkstemp(prefix="orch-", suffix=".log")
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def complain(text: str) -> None:
    """Print one line on standard error, whatever ``text`` holds, without secrets."""
    with unless_gone():
        say(f"orch: {terminal(one_line(text))}", err=True)


def one_line(text: str) -> str:
    """Return ``text`` on one line, without secrets."""
    return " ".join(hide(text).split())


def close_stdout() -> None:
    """Point standard output nowhere, so that the interpreter does not stumble over the closed pipe at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives until the interpreter ends


if __name__ == "__main__":
    sys.exit(main())
