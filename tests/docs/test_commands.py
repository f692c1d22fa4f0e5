"""Every command that README, docs, examples and cluster.yaml tell is one that the command line takes."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from audits.errors import BadInput
from orchestrator.cli.cp import text_of
from orchestrator.cli.main import COMMANDS, group, main
from orchestrator.cli.options import with_target
from orchestrator.cli.session import Session
from orchestrator.cli.sweeps import chosen, chosen_among
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sweep_files import is_sweep
from orchestrator.judgement.gate import gates_of
from orchestrator.kinds import KINDS, kind_named, load_plan
from tests.docs.commands import ROOT, Command, files_of, named, named_tests, python_blocks, told
from tune_spaces.registry import Sweep

QUICK = ("ls", "cp", "validate")
"""Commands that take seconds: they are run."""


def once(commands: Iterable[Command]) -> list[Command]:
    """Return each command of a file once."""
    return list({str(command): command for command in commands}.values())


TOLD = once(told())
ORCH = [command for command in TOLD if command.words[0] == "orch"]
OTHERS = [command for command in TOLD if command.words[0] != "orch"]
NAMED = once(named())


def of_one_page(commands: Iterable[Command]) -> list[Command]:
    """Return commands without those that another file says in the same words, where no file of the page takes part."""
    return list(
        {(c.words, c.whole, c.path if files_beside(c.path) else None): c for c in reversed([*commands])}.values()
    )


@functools.cache
def files_beside(path: Path) -> dict[str, str]:
    """Return the files that a page has its reader write; other files have none."""
    return files_of(path) if path.suffix == ".md" else {}


def parse(words: Sequence[str], whole: bool) -> click.Context | None:
    """Return what click makes of the words behind ``orch``; None for a part of a command that is not wrong."""
    command: click.Command = group
    context = click.Context(group, info_name="orch", obj=Session())
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name.isupper() and not whole:  # any command
            return None
        found = command.get_command(context, name)
        assert found is not None, f"no command {name!r}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    if isinstance(command, click.Group) and not rest:
        assert not whole
        return None
    try:
        with command.make_context(context.info_name, rest, parent=context.parent) as parsed:
            return parsed
    except click.exceptions.Exit:  # --help, --version
        return None
    except (click.MissingParameter, click.BadOptionUsage):  # a mention: `orch report`, `orch audit tmia --fail-above`
        if whole:
            raise
        return None


def stands_for_something(word: str) -> bool:
    """Say whether ``word`` is the reader's own: ``PLAN``, ``my.yaml``."""
    return word.isupper() or (word.endswith(".yaml") and "/" not in word)


def base_plan(name: str, values: dict[str, Any]) -> str | None:
    """Return the plan that a command starts from, as ``load_plan`` takes it."""
    default = {
        "audit": lambda: with_target(values["kind"], None, (), values["targets"], None)[0],
        "sweep": lambda: sweep_told(values).base,
        "tune": lambda: (
            sweep_told(values, tune=True).base if values["name"] else kind_named(values["kind"]).default_plan
        ),
    }
    source = values.get("source")
    if name == "verify" and source is not None and source.startswith("runs/"):
        return None  # the folder of a run of the reader's
    if source is None or (stands_for_something(source) and not Path(source).is_file()):
        return default[name]() if name in default else None
    return str(ROOT / source) if "/" in source else str(source)


def sweep_told(values: dict[str, Any], *, tune: bool = False) -> Sweep:
    """Return the sweep of a command; a file of the reader's own stands for any sweep."""
    name = values["name"]
    if name is not None and not values["vary"] and name.endswith(".yaml"):
        name = "apollo-seeds" if stands_for_something(name) else str(ROOT / name)
    return (chosen_among if tune else chosen)(name, values["source"], values)[0]


def check(name: str, values: dict[str, Any]) -> None:
    """Refuse names of audits, sweeps and plans, values of --set and limits that are not there."""
    if name == "audit":
        assert values["kind"] in KINDS or stands_for_something(values["kind"])
    if name == "sweep" and values["name"] is None and not values["vary"]:  # --resume, or any sweep
        return
    file = ROOT / (values.get("source") or "")
    if name == "validate" and file.is_file() and is_sweep(file):
        return  # it is run
    if name in ("sweep", "cost", "tune") and (values["name"] is not None or values["vary"]):
        sweep_told(values, tune=name == "tune" or values.get("tune", False))
    if name == "cp":
        assert text_of(values["name"])
    if "overrides" not in values or stands_for_something(values.get("kind") or ""):
        return
    overrides = values["overrides"]
    if name == "audit" and values["targets"]:
        overrides = with_target(values["kind"], None, overrides, values["targets"], values["members"])[1]
    plan: BasePlan = load_plan(base_plan(name, values), overrides)
    if name == "audit":
        assert values["kind"] in (plan.kind, plan.audit.kind)
        gates_of(values["limits"], kind_named(plan.kind).headline, plan)
    if name == "sweep":
        assert plan.kind == load_plan(sweep_told(values).base).kind


def by_file() -> Iterator[Any]:
    """Yield the files that tell of commands, each with these."""
    found: dict[Path, list[Command]] = {}
    for command in of_one_page([*ORCH, *NAMED]):
        found.setdefault(command.path, []).append(command)
    for path, commands in found.items():
        yield pytest.param(path, commands, id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize(("path", "commands"), by_file())
def test_the_command_line_takes_what_readers_are_told(
    path: Path, commands: list[Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files_beside(path).items():
        Path(name).write_text(text)
    wrong = {}
    for command in commands:
        try:
            parsed = parse(command.words[1:], command.whole)
            if parsed is not None and parsed.parent is not None:
                check(str(parsed.info_name), parsed.params)
        except (AssertionError, click.ClickException, BadInput) as error:
            wrong[str(command)] = repr(error)
    assert wrong == {}


def test_every_command_is_told_of_somewhere() -> None:
    assert {command.words[1] for command in ORCH if len(command.words) > 1} >= COMMANDS.keys()


@pytest.mark.parametrize(
    "words", sorted({command.words[1:] for command in ORCH if command.words[1:2] and command.words[1] in QUICK[:1]})
)
def test_lists_are_printed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(words)) == 0
    assert capsys.readouterr().out.strip()


def lines_to_run() -> dict[tuple[tuple[str, ...], ...], Path]:
    """Return the commands of seconds of each file, one after the other, and the file; of equal ones the first."""
    found: dict[tuple[tuple[str, ...], ...], Path] = {}
    for path in sorted({command.path for command in ORCH}):
        own = files_beside(path)  # commands stand on further files of the page
        words = [each.words[1:] for each in ORCH if each.path == path and {*each.words[1:2]} & {*QUICK[1:]}]
        found.setdefault(tuple(line for line in words if not {*line} & own.keys()), path)
    return found


DEAR = ("data.md", "sweeps.md", "given-models.md")
"""Pages whose plans, sweeps and models take longest."""


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        pytest.param(lines, path, id=path.name, marks=pytest.mark.long if path.name in DEAR else ())
        for lines, path in lines_to_run().items()
    ],
)
def test_commands_of_seconds_do_what_they_say_one_after_the_other(
    lines: Sequence[Sequence[str]], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for line in lines:
        assert main(list(line)) == 0, line


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("command", OTHERS, ids=str)
def test_other_programs_have_what_they_are_asked_for(command: Command) -> None:
    program, *rest = command.words
    if program == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets)
    elif program == "python" and rest[0] == "-m":
        module = importlib.util.find_spec(rest[1])
        assert module is not None and module.origin is not None
        assert {word for word in rest if word.startswith("--")} <= options_of(Path(module.origin))
    elif program == "python":
        in_a_page = any(f"python {rest[0]}" in block for _, block in python_blocks()) or rest[0] in files_of(
            command.path
        )
        assert (ROOT / rest[0]).is_file() or in_a_page
    else:
        assert (Path(sys.executable).parent / program).is_file()


def options_of(file: Path) -> set[str]:
    """Return the options that a script of benchmarks/ defines, by itself or through others there."""
    text = file.read_text()
    others = re.findall(rf"^from {file.parent.name}(?:\.(\w+))? import", text, re.MULTILINE)
    texts = [text, *((file.parent / f"{name}.py").read_text() for name in others if name)]
    return {option for found in texts for option in re.findall(r"\"(--[\w-]+)\"", found)}


@pytest.mark.parametrize(("path", "block"), list(python_blocks()), ids=lambda value: getattr(value, "name", ""))
def test_python_on_the_pages_imports_what_is_there(path: Path, block: str) -> None:
    own = {Path(name).stem for name in files_of(path)}
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and node.module in own:
            continue
        if isinstance(node, ast.Import):
            assert all(importlib.util.find_spec(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            scope: dict[str, Any] = {}
            exec(ast.unparse(node), scope)
            assert all((alias.asname or alias.name) in scope for alias in node.names)


def test_tests_that_pages_and_sources_name_are_there() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {file.relative_to(ROOT)} {function}"
        for path, file, function in named_tests()
        if not file.is_file() or (function and f"def {function}(" not in file.read_text())
    ]
    assert not missing


def test_what_is_wrong_is_noticed() -> None:
    for line in ("audits tmia", "sweep tmia-alpha --otu x", "ls models layers", "report"):
        with pytest.raises((AssertionError, click.UsageError)):
            parse(line.split(), whole=True)
    for line in ("audit tmai", "sweep tmia-alpah", "audit tmia --set audit.betta=1", "audit tmia --fail-above au=1"):
        parsed = parse(line.split(), whole=True)
        assert parsed is not None
        with pytest.raises((AssertionError, BadInput)):
            check(str(parsed.info_name), parsed.params)
