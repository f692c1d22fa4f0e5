"""``orch check``: does a component of one's own keep to what audits need of it?"""

from __future__ import annotations

import json

import click

from orchestrator.cli.lines import say
from orchestrator.cli.options import allow_code_option, json_option, session_of
from orchestrator.engine.kind import load
from orchestrator.engine.own_code import follow_edits
from orchestrator.engine.plan.overrides import parse_override

SORTS = ("model", "data", "unlearner", "attack")
TESTS = "orchestrator.cli.conformance"
"""The module that runs them; it imports torch, which ``--help`` can do without."""


@click.command("check")
@click.argument("name")
@click.option("--as", "sort", type=click.Choice(SORTS), help="Kind of component, if NAME does not tell.")
@click.option("--data", default="digits", show_default=True, metavar="NAME", help="Data to try models and methods on.")
@click.option("--set", "settings", multiple=True, metavar="A=B", help="A setting of the component; repeatable.")
@allow_code_option
@json_option
def command(name: str, sort: str | None, data: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Run the contract tests of NAME: python:module:name, or what an installed package offers.

    One line for each, with what to do where it does not hold; exit code 1 if one does not. NAME is a model, a data set,
    an unlearning method or an attack; built-in ones pass the same tests.
    """
    session_of(click.get_current_context()).permission.said([name, data])
    follow_edits()
    tests = load(TESTS)
    found = sort or tests.sort_of(name)
    results = tests.checked(name, found, data, dict(map(parse_override, settings)))
    if as_json:
        lines = [{"promise": each.promise, "holds": not each.problem, "problem": each.problem} for each in results]
        say(json.dumps({"name": name, "as": found, "checks": lines}))
    else:
        say(f"{name} as {found}")
        for each in results:
            say(
                f"  {'FAILS' if each.problem else 'holds'}  {each.promise}" + (f": {each.problem}" * bool(each.problem))
            )
    if any(each.problem for each in results):
        raise click.exceptions.Exit(1)
