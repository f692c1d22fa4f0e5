"""Completions for shells: names of kinds, plans, sweeps, metrics and fields of plans; nothing heavy is imported."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from yaml import YAMLError

from audits.errors import BadInput
from orchestrator.cli.known_kinds import KNOWN, LISTS
from orchestrator.engine.plan.files import read_plan, shipped_plans, sort_of
from orchestrator.kinds import KINDS, OF_TARGETS
from tune_spaces import SWEEPS


def typed(ctx: click.Context, name: str) -> str | None:
    """Return the argument ``name`` as far as it is typed; behind an option without its value click assigns none."""
    if ctx.params.get(name) is not None:
        return str(ctx.params[name])
    places = [each.name for each in ctx.command.params if isinstance(each, click.Argument)]
    return dict(zip(places, ctx.args, strict=False)).get(name)


def starting(words: Iterable[str], incomplete: str, kind: str = "plain") -> list[CompletionItem]:
    """Return the words that begin as what is typed does, but for those in which a shell would find more than a word.

    It takes them as they are, and names of folders and fields of plans may be anybody's.
    """
    found = (word for word in words if word.startswith(incomplete) and shlex.quote(word) == word)
    return [CompletionItem(word, type=kind) for word in found]


def kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a kind of audits."""
    return starting((name for name in KINDS if name not in OF_TARGETS.values()), incomplete)


def lists(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete what ``orch ls`` lists."""
    return starting(LISTS, incomplete)


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a file; what is no file's name is typed."""
    return [CompletionItem(incomplete, type="file")]


def plans(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a shipped plan, of the kind that is typed if there is one, else a file."""
    prefix = f"{typed(ctx, 'kind') or ''}-".lstrip("-")
    return named_or_file((name for name in shipped_plans() if name.startswith(prefix)), incomplete)


def sweeps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a shipped sweep, else a file."""
    return named_or_file(SWEEPS, incomplete)


def plans_and_sweeps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a shipped plan or sweep."""
    return starting([*shipped_plans(), *SWEEPS], incomplete)


def named_or_file(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Complete a name, or files where none begins so."""
    return starting(names, incomplete) or [CompletionItem(incomplete, type="file")]


def limits(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the metric of a limit of the kind that is typed, of any kind without one."""
    kind = typed(ctx, "kind")
    known = [KNOWN[kind]] if kind in KNOWN else list(KNOWN.values())
    return starting(dict.fromkeys(f"{metric}=" for each in known for metric in each.limits()), incomplete)


def fields(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a field of the plan that is typed, or of the default of the kind."""
    kind = typed(ctx, "kind")
    source = typed(ctx, "source") or (KNOWN[kind].default_plan if kind in KNOWN else None)
    try:
        if source and sort_of(source) == "file" and not Path(source).is_file():  # a pipe would be waited for
            return []
        plan = read_plan(source)
    except (BadInput, OSError, YAMLError):
        return []
    return starting((f"{path}=" for path in dict.fromkeys(paths(plan))), incomplete)


def paths(value: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Yield the dotted paths of all values of a plan, entries of lists by their numbers."""
    for key, inner in value.items():
        if isinstance(inner, list) and inner and all(isinstance(each, Mapping) for each in inner):
            inner = {str(place): each for place, each in enumerate(inner)}
        if isinstance(inner, Mapping) and inner:
            yield from paths(inner, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the folder of a finished run below ``runs``, else any folder."""
    found = (str(file.parent) for file in sorted(Path("runs").glob("*/result.json")))
    return starting(found, incomplete) or [CompletionItem(incomplete, type="dir")]
