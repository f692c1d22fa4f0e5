"""``orch submit``: the same command, as a job of a Ray cluster."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from importlib.machinery import all_suffixes
from pathlib import Path
from uuid import uuid4

import click
from click.core import ParameterSource

from actors.interrupts import EXIT_CODES, told_to_end
from actors.interrupts import exit_code as interrupted
from actors.own_cluster import require_own_listener
from actors.submit import ADDRESS, Ended, JobServer, JobServerLost, require_form, source_folders
from audits.data.groups import table_of_groups
from audits.errors import BadInput, how_many
from audits.home import expanded
from orchestrator.cli.gating import clear, leave_error, write_for_ci
from orchestrator.cli.handover import is_carried, unpack
from orchestrator.cli.lines import say
from orchestrator.cli.session import Session
from orchestrator.cli.submitted_work import HANDED_ON, PLAN, SAID_OF_STORES, Work, read_command
from orchestrator.engine.media import terminal
from orchestrator.engine.own_code import own_code
from orchestrator.engine.run.output_folder import LOG_FILE, RESULT_FILE, claim_folder, usual_folder
from orchestrator.engine.run.taking import made_ready

BROKE = 3
INSTALLED = (".dist-info", ".egg-info", ".egg")
"""Ends of the names by which Python takes what lies on its path for installed packages, whose offers it runs."""
OWN_CODES = (0, 1, 2, BROKE, *EXIT_CODES)


@click.command("submit", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--address",
    metavar="URL",
    default=ADDRESS,
    envvar="RAY_API_SERVER_ADDRESS",
    show_default=True,
    help="The head's dashboard as this machine reaches it; `ray dashboard cluster.yaml` forwards it.",
)
@click.option("--attach", metavar="JOB", help="Follow a job that was submitted before, and fetch its results.")
@click.option("--out", type=click.Path(), metavar="DIR", help="Folder of the results on this machine.")
@click.argument("words", metavar="COMMAND…", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(session: Session, address: str, attach: str | None, out: str | None, words: tuple[str, ...]) -> None:
    """Run COMMAND (`audit …`, `sweep …` or `tune …`, as without submit) on a Ray cluster, and fetch its results.

    Code of a checkout and the plan travel with the job; data, installed packages and the store are the cluster's. What
    the job prints is shown as it comes. Ctrl-C asks whether to cancel the job; it goes on unless the answer is y.
    The exit code is that of COMMAND.
    """
    if attach and words:
        raise BadInput(f"--attach {attach} follows a job that runs already; leave out the command")
    if click.get_current_context().get_parameter_source("address") is ParameterSource.DEFAULT:
        require_own_listener(address, f"--address {address}")
    if attach:
        work = None
        folder = Path(out) if out else usual_folder(attach)
        code = follow(JobServer(address), attach, folder, as_json=False)
    else:
        require_form(address)
        work = read_command(session, words, out)
        server = JobServer(address)
        clear(work.junit, work.summary)
        with made_ready(work.out, work.plan, force=work.force):
            name = start(server, work)
        session.log = claim_folder(work.out, work.plan, force=work.force)
        say(f"job {name} at {address}", err=work.as_json)
        code = follow(server, name, work.out, as_json=work.as_json)
    if work is not None:
        write_files(work, code)
    raise click.exceptions.Exit(code)


def write_files(work: Work, code: int) -> None:
    """Write the files for CI of a job that ended with ``code``: its result, or that it has none."""
    if code in (0, 1):  # else what lies there is of an earlier run
        file = work.out / RESULT_FILE
        write_for_ci(json.loads(file.read_text(encoding="utf-8")), work.out, work.junit, work.summary)
    else:
        text = f"the job did not finish; what it printed and {work.out / LOG_FILE} say why"
        leave_error(f"orch submit {work.words[0]}", text, code, work.junit, work.summary)


def start(server: JobServer, work: Work) -> str:
    """Send code and plan, start the job, and return its name."""
    name = f"orch-{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:6]}"
    process = ("python", "-m", "orchestrator.cli.submitted", f"~/.orch/jobs/{name}", *work.words)
    variables = {"PYTHONUNBUFFERED": "1"} | {
        key: os.environ[key] for key in HANDED_ON if is_for_all(os.environ.get(key, ""))
    }
    variables |= {key: os.environ[key] for key in SAID_OF_STORES if key in os.environ}
    with tempfile.TemporaryDirectory(prefix="orch-") as folder:
        for package in source_folders():
            shutil.copytree(package, Path(folder) / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        if work.source is not None:
            send(work.source, Path(folder), PLAN)
        if work.sweep is not None:
            send(work.sweep, Path(folder), work.sweep.name)
        for place in own_code([work.plan.resolved()]).places:
            if place.is_dir():
                shutil.copytree(place, Path(folder) / place.name, ignore=left_here)
            else:
                shutil.copy(place, folder)
        if (groups := work.plan.data.groups) is not None and lies_here(groups):
            send(groups, Path(folder), groups)
            table_of_groups(groups)  # a plan may name any file, and what is no list of groups stays here
        try:
            server.submit(name, shlex.join(process), Path(folder), variables)
        except KeyboardInterrupt:  # the server may have it, and nobody would know its name
            with contextlib.suppress(BadInput, JobServerLost):
                server.cancel(name)
            raise
    return name


def left_here(folder: str, names: list[str]) -> list[str]:
    """Return what of a user's package does not travel: bytecode, and links, which may lead to any file of theirs."""
    return [name for name in names if name == "__pycache__" or Path(folder, name).is_symlink()]


def lies_here(file: str) -> bool:
    """Say whether a plan names a file by its place below the working folder; others are the cluster's own."""
    return not expanded(file).is_absolute() and ".." not in Path(file).parts


def send(file: str | Path, folder: Path, name: str) -> None:
    """Copy a plan or data into the ``folder`` that travels; raises BadInput for what would be imported there as code.

    The cluster looks for modules in this folder, and a plan may name any file.
    """
    place = folder / name
    if any(part.is_symlink() for part in (Path(file), *Path(file).parents) if not part.is_absolute()):
        raise BadInput(f"{file} is not sent: it is, or lies behind, a link to something else; put the file there")
    if not Path(file).is_file():
        raise BadInput(f"{file} is not sent: it is no file")
    if place.is_file() and filecmp.cmp(file, place, shallow=False):  # it lies in a package of the user's
        return
    within = place.exists() or (place.parent != folder and (folder / Path(name).parts[0]).exists())
    if what := taken_for(name) or ("a part of the job" if within else ""):
        raise BadInput(f"{file} is not sent: its name is that of {what}, which the cluster would heed; rename it")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, place)


def taken_for(name: str) -> str:
    """Return which code a file of this name, in a folder where modules and libraries are looked for, would be."""
    parts = [Path(part.lower()) for part in Path(name).parts]
    if any(part.name.endswith(INSTALLED) for part in parts):
        return "an installed package"
    if any(part.name.startswith(".") for part in parts):
        return "a list of what is not sent"
    if Path(name).suffix in all_suffixes():
        return "a Python module"
    return "a shared library" if any(".so" in part.suffixes for part in parts) else ""


def is_for_all(value: str) -> bool:
    """Say whether a variable names a place that the cluster can reach, too."""
    return ("://" in value and not value.startswith(("sqlite:", "file:"))) or Path(value).is_absolute()


def follow(server: JobServer, name: str, out: Path, *, as_json: bool) -> int:
    """Show what the job prints until it ends, write its results into ``out``, and return the exit code.

    A job that left none did not finish, whatever its code: what lies in ``out`` is of an earlier run.
    """
    screen = Screen(err=as_json)
    try:
        ended = server.follow(name, screen.write)
    except KeyboardInterrupt:
        if wants_to_cancel(name):
            server.cancel(name)
            say(f"job {name} is cancelled; finished models are kept", err=True)
        else:
            again = f"orch submit --address {server.address} --attach {name} --out {out}"
            say(f"job {name} is still running; to follow it again: {again}", err=True)
        return exit_code(Ended("STOPPED", interrupted(), ""))
    screen.end()
    if not (files := unpack(server.log(name), out)):
        say(f"job {name} left no results", err=True)
    else:
        say(f"results: {out} ({how_many(len(files), 'file')})", err=as_json)
    code = exit_code(ended)
    if not files:
        return BROKE if code in (0, 1) else code
    if as_json and RESULT_FILE in files:
        say((out / RESULT_FILE).read_text(encoding="utf-8"))
    return code


def wants_to_cancel(name: str) -> bool:
    """Ask; no answer, another Ctrl-C, or nobody at the terminal means no, and so does a signal that is no Ctrl-C."""
    if told_to_end() or not sys.stdin.isatty():
        return False
    try:
        question = f"\ncancel the job {terminal(name)}? y/N (Enter: leave it running and stop following)"
        return click.prompt(question, default="n", show_default=False, err=True).strip().lower().startswith("y")
    except (click.Abort, KeyboardInterrupt):
        return False


def exit_code(ended: Ended) -> int:
    """Return the command's own exit code; where the job has none of orch's, say why in one line."""
    if ended.status == "SUCCEEDED":
        return 0
    if ended.status == "STOPPED":
        return interrupted()
    if ended.code in OWN_CODES and ended.code != 0:
        return int(ended.code)
    reason = " ".join(ended.message.split())[:300]
    say(f"orch: the job ended without an exit code of its own ({ended.status}): {reason}", err=True)
    return BROKE


class Screen:
    """Lines of a job's log as they come, without those that carry its results."""

    def __init__(self, *, err: bool) -> None:
        self._err = err
        self._rest = ""

    def write(self, text: str) -> None:
        """Show the lines that ``text`` completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if not is_carried(line):
                say(click.unstyle(line), err=self._err)

    def end(self) -> None:
        """Show what no line end followed."""
        if self._rest:
            self.write("\n")
