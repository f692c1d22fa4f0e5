"""``orch new``: a small plan by questions or options."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from audits.data.catalogue import describe
from audits.errors import BadInput, did_you_mean
from audits.own.permission import is_own
from audits.targets.forms import is_here
from audits.targets.members import read_members
from orchestrator.cli.completing import files, starting
from orchestrator.cli.completing import kinds as kind_names
from orchestrator.cli.lines import say
from orchestrator.cli.new_plans import OF_TARGETS, SHARES, SIZES, TEXTS, Parts, text_of
from orchestrator.cli.session import Session
from orchestrator.engine.plan.files import parse_yaml
from orchestrator.engine.plan.points import points_in
from orchestrator.engine.plan.sections import Data
from orchestrator.kinds import check_against_data, plan_from

QUESTIONS = {
    "apollo": "Can points that were unlearned still be recognised?",
    "tmia": "Which points was a model trained on, by labels alone, and of a teacher?",
    "gnq": "What does a model disclose about each point, and what does removal help?",
    "mia": "Which points was an ordinary model trained on?",
}

MISFIT = "does not fit the architecture"
"""What is said of weights that another model may fit."""
SIZED = ("split", "audit", "transfer")
"""The sections that hold what sizes differ in: what is refused of others, another size does not mend."""
OWN = "File, folder of save_pretrained or address of a model of yours (empty: models are trained)"


def sizes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a size."""
    return starting(SIZES, incomplete)


@click.command("new")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--kind", metavar="KIND", shell_complete=kind_names, help="apollo, tmia, gnq or mia.")
@click.option("--data", metavar="NAME", help="The data set (`orch data ls`); fashion14 by default.")
@click.option("--model", metavar="NAME", help="The architecture (`orch ls models`); mlp, bert for texts, by default.")
@click.option(
    "--settings", metavar="YAML", help="Settings of the architecture, e.g. {hidden: [32]}; else its defaults."
)
@click.option(
    "--size",
    metavar="SIZE",
    shell_complete=sizes,
    help="seconds, minutes (default) or hours on two cores with the embedded data.",
)
@click.option(
    "--target",
    metavar="FILE|FOLDER|ADDRESS",
    shell_complete=files,
    help="A model of yours that is to be audited (kinds mia and gnq).",
)
@click.option(
    "--members",
    metavar="FILE|RULE",
    shell_complete=files,
    help="Which points it was trained on: ids, or all, even, odd, START:STOP.",
)
@click.pass_obj
def command(
    session: Session,
    file: Path | None,
    kind: str | None,
    data: str | None,
    model: str | None,
    settings: str | None,
    size: str | None,
    target: str | None,
    members: str | None,
) -> None:
    """Write a small plan with comments to FILE, which must not be there yet.

    On a terminal what no option says is asked for; elsewhere it has its default, but for --kind.
    """
    if file is not None:
        refuse_file(file)
    if not kind:
        for name, question in QUESTIONS.items() if sys.stdin.isatty() else ():
            say(f"{name:7} {question}")
    kind = settled(kind, "Kind of audit", tuple(TEXTS), "apollo", needed="--kind")
    if target is None and members is None and kind in OF_TARGETS:
        target = accepted(None, OWN, "", require_file) or None
    asks = target is not None and members is None and kind in OF_TARGETS and sys.stdin.isatty()
    if not asks:
        require_target(kind, target, members)
    require_file(target or "")
    session.permission.said((data, model, target))

    def usable_data(name: str) -> str:
        session.permission.said((name,))
        require_data(name)
        return name

    data = accepted(data, "Data set", "fashion14", usable_data)
    if target is not None:
        question = "Points that it was trained on (a file of ids, all, even, odd, START:STOP)"
        members = accepted(members, question, "", partial(require_members, data=data))

    made_of = architecture(session, kind, Parts(data, model or "", settings or "", target or "", members or ""), asks)
    size = settled(size, "How long may it take", SIZES, "minutes")
    text, made = fitting(kind, size, made_of)
    if file is None:
        file = Path(ask_person("File", f"{kind}.yaml"))
        refuse_file(file)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from None
    if made != size:
        say(f"{data} has too few points for an audit of {size}: the plan is that of {made}")
    own = " --allow-code" if is_own(made_of.model) or is_own(made_of.data) else ""
    commands = (f"orch {command} {file}{own}" for command in ("validate", "cost", f"audit {kind}"))
    say(f"wrote {file}; edit it, then: {' && '.join(commands)}")


def refuse_file(file: Path) -> None:
    """Raise BadInput for a file that is there."""
    if os.path.lexists(file):
        raise BadInput(f"{file} is there already; give another name")


def ask_person(question: str, default: str) -> str:
    """Return the answer of the person at the terminal, the default where there is none."""
    if not sys.stdin.isatty():
        return default
    return str(click.prompt(question, default=default, show_default=bool(default))).strip()


def settled(given: str | None, question: str, allowed: Sequence[str], default: str, needed: str = "") -> str:
    """Return one of the ``allowed`` words: the one given, or the answer; a wrong answer is asked for again.

    Raises BadInput for a wrong word that was given, and for one that is ``needed`` where nobody can be asked.
    """
    if given is not None:
        return known(given, allowed)
    if needed and not sys.stdin.isatty():
        raise BadInput(f"{needed} is missing; give one of {', '.join(allowed)}")
    return repeated(lambda: known(ask_person(f"{question} ({', '.join(allowed)})", default), allowed))


def accepted(given: str | None, question: str, default: str, usable: Callable[[str], str]) -> str:
    """Return the word that was given, or the answer, as ``usable`` returns it; a wrong answer is asked for again.

    Raises BadInput for a wrong word where nobody was asked.
    """
    if given or not sys.stdin.isatty():
        return usable(given or default)
    return repeated(lambda: usable(ask_person(question, default)))


def repeated(ask: Callable[[], str]) -> str:
    """Return the first answer that is not refused."""
    while True:
        try:
            return ask()
        except BadInput as error:
            say(str(error))


def known(word: str, allowed: Sequence[str]) -> str:
    """Return ``word``; raises BadInput for one that is not allowed."""
    if word not in allowed:
        raise BadInput(f"{word!r} is not known{did_you_mean(word, allowed)}; allowed: {', '.join(allowed)}")
    return word


def require_data(name: str) -> None:
    """Raise BadInput for a data set that is neither there nor known by its size."""
    facts = describe(name)
    if not facts.present and not (facts.points and facts.shape and facts.classes):
        raise facts.missing()


def require_file(target: str) -> str:
    """Return the target; raises BadInput for a file or a folder that is not there."""
    if target and ":" not in target and not is_here(target):
        raise BadInput(
            f"target {target} is not here; give a file, a folder of save_pretrained, or an address (http://…)"
        )
    return target


def require_members(members: str, data: str) -> str:
    """Return the members; raises BadInput for a file that cannot be read, and for what are no points of ``data``."""
    facts = describe(data)
    if facts.points:
        read_members(members, points_in(Data(name=data), facts), "members")
    return members


def architecture(session: Session, kind: str, given: Parts, asks: bool) -> Parts:
    """Return the parts of a plan with its model, which fits the data, and that of the target if there is one.

    ``asks``: settings are asked for as well, and what does not fit is asked for again, the target too where it cannot
    be read. Raises BadInput where nobody is to be asked.
    """

    def usable(name: str) -> str:
        session.permission.said((name,))
        require_model(kind, Parts(given.data, name, given.settings))
        return name

    found, default = given, "bert" if given.data.startswith("imdb") else "mlp"
    while True:
        found = replace(found, model=accepted(given.model or None, "Model", default, usable))
        if asks and not given.settings:
            found = replace(found, settings=ask_person("Its settings, e.g. {hidden: [32]} (empty: its defaults)", ""))
        try:
            require_model(kind, found)
        except BadInput as error:
            if not asks or (given.model and given.settings):
                raise
            say(str(error))
            if str(error).startswith("target") and MISFIT not in str(error):
                found = replace(found, target=accepted(None, OWN, "", require_file))
            default = found.model
        else:
            return found


def require_model(kind: str, parts: Parts) -> None:
    """Raise BadInput for a model that is not known, does not fit the data, or is not that of the target.

    The smallest plan says so. What else is wrong with that plan is no matter of the model; ``fitting`` tells it.
    """
    try:
        fitting(kind, SIZES[0], parts)
    except BadInput as error:
        if str(error).startswith(("model", "target")) or MISFIT in str(error):
            raise


def require_target(kind: str, target: str | None, members: str | None) -> None:
    """Raise BadInput for a target without members, members without a target, and kinds that need to know more."""
    if target is None and members is None:
        return
    if not target or not members:
        raise BadInput("--target and --members go together: a model, and which points it was trained on")
    if kind not in OF_TARGETS:
        raise BadInput(
            f"a plan of {kind} with a target needs more than orch new asks for; see docs/how-to/given-models.md"
        )


def fitting(kind: str, size: str, parts: Parts) -> tuple[str, str]:
    """Return the text of a plan that is valid, of ``size`` or the largest below that fits the data, and its size.

    For small data, that of the smallest size is cut to fewer points. Raises BadInput for data or a model that no size
    fits. Data that are not there will do, if their size is known.
    """
    sizes = [(name, 1.0) for name in reversed(SIZES[1 : SIZES.index(size) + 1])]
    for name, share in (*sizes, *((SIZES[0], share) for share in SHARES)):
        text = text_of(kind, name, parts, share)
        try:
            plan = plan_from(parse_yaml(text, "the new plan"))
        except BadInput:
            if share < 1:
                break  # its rates cannot be resolved by fewer points
            raise
        try:
            check_against_data(plan, absent=True)
        except BadInput as error:
            if not str(error).startswith(SIZED):
                raise
            refused = error
        else:
            return text, name if share == 1 else f"{name}, cut to {share:.0%} of its points"
    if str(refused).startswith("split"):
        raise BadInput(
            f"{parts.data} is too small for a plan of {kind}, even of {SIZES[0]} ({str(refused).rpartition(';')[0]}); "
            "give more points, or change a copy of a shipped plan: orch ls plans, orch cp"
        )
    raise refused
