"""Permission to run a plan's code and to reach its addresses: a plan is a file, and a file may be anybody's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from audits.addresses import place_of
from audits.credentials import MASK
from audits.errors import BadInput
from audits.home import expanded
from audits.own.permission import ALLOW, Named, is_own
from audits.targets.forms import form_by_name
from orchestrator.engine.media import visible
from orchestrator.engine.plan.reach import OPTION, TRUSTING, VARIABLE, Reach


@dataclass
class Permission:
    """What the user has allowed, or wrote on the command line himself.

    ``everything``: all code (--allow-code); ``own``: names of code, and folders, on the command line; ``agreed``: names
    of code to which the user said yes; ``fields``: dotted fields of the plan and their texts; ``places``: credentials,
    "" for none, and the places that they may be sent to.
    """

    everything: bool = False
    own: set[str] = field(default_factory=set)
    agreed: set[str] = field(default_factory=set)
    fields: set[tuple[str, str]] = field(default_factory=set)
    places: set[tuple[str, str]] = field(default_factory=set)

    def said(self, words: Iterable[str | None]) -> None:
        """Take down names of code and folders that stand on the command line."""
        self.own.update(word for word in words if word)

    def said_of(self, fields: Iterable[tuple[str, str]]) -> None:
        """Take down dotted fields of the plan, and their texts, that stand on the command line."""
        found = list(fields)
        self.fields.update(found)
        self.said(text for field, text in found if is_own(text) or field.endswith(".root"))

    def allow(self, words: Iterable[str]) -> None:
        """Allow places, ``[CREDENTIAL@]PLACE`` each; raises BadInput for what is none."""
        for word in words:
            self.places.add(read_allowance(word))

    def __getstate__(self) -> dict[str, Any]:
        """Return what workers are handed: the environment of the command speaks with it, theirs may be another."""
        everything = self.everything or os.environ.get(ALLOW) == "1"
        return {**self.__dict__, "everything": everything, "places": self.allowed()}

    def may_run(self, named: Sequence[Named]) -> bool:
        """Return whether the code of all these names may run; ask once where a person sits.

        A name on the command line is the user's word, but not for the folder that somebody's plan names beside it.
        """
        if self.everything or os.environ.get(ALLOW) == "1":
            return True
        unknown = [each for each in named if not self.is_known(*each)]
        if not unknown:
            return True
        if not somebody_is_there():
            return False
        names = list(dict.fromkeys(name for name, _ in unknown))
        folders = dict.fromkeys(str(root or Path.cwd()) for name, root in unknown if is_own(name))
        whose = f"code of {', '.join(folders)}" if folders else "as a program"
        question = f"{', '.join(names)} {'runs' if len(names) == 1 else 'run'} {whose}; run it?"
        yes = click.confirm(visible(question), err=True)
        self.own.update((str(root) for _, root in unknown if root) if yes else ())
        self.agreed.update(names if yes else ())
        return yes

    def is_known(self, name: str, root: Path | None) -> bool:
        """Return whether the user has named this code, and its folder if there is one.

        Who names a file of weights has not named a program that lies there: the ending must say it, and the field too.
        """
        as_model = any(text == name and field.startswith("target.") for field, text in self.fields)
        named = name in self.own if is_own(name) else as_model and form_by_name(name) == "torchscript"
        in_folder = root is None or any(expanded(word) == root for word in self.own)
        return (named or name in self.agreed) and in_folder

    def refused(self, found: Sequence[Reach]) -> Sequence[Reach]:
        """Return those of the places that may not be reached, or not with their credential; ask once about all."""
        unknown = [reach for reach in found if not self.is_allowed(reach)]
        if not unknown or not somebody_is_there() or any(MASK in reach.place for reach in unknown):
            return unknown
        question = f"{'; '.join(map(str, unknown))}; go on?"
        if not click.confirm(visible(question), err=True):
            return unknown
        self.places.update(reach.allowance for reach in unknown)
        return ()

    def is_allowed(self, reach: Reach) -> bool:
        """Return whether a place may be reached, and its credential sent there.

        Servers on this machine are no exception: what listens there trusts whoever can reach it, and a plan may choose
        what it is sent. A place that is allowed with one credential is allowed without. One that the plan lets be known
        by a file of certificates is another place than without, or by another file.
        """
        if self.is_own_word(reach) or MASK in reach.place:
            return self.is_own_word(reach)
        allowed, (credential, wanted) = self.allowed(), reach.allowance
        return (credential, wanted) in allowed if credential else any(place == wanted for _, place in allowed)

    def allowed(self) -> set[tuple[str, str]]:
        """Return the credentials, "" for none, and places that command line, environment and answers allow."""
        return self.places | {read_allowance(word) for word in os.environ.get(VARIABLE, "").split()}

    def is_own_word(self, reach: Reach) -> bool:
        """Return whether the address stands on the command line, and with it what names credential and certificates."""
        said = [(reach.field, reach.text)]
        said += [(reach.token_field, reach.credential)] if reach.token_field else []
        said += [reach.trusts] if reach.trusts else []
        return self.fields.issuperset(said)


def somebody_is_there() -> bool:
    """Say whether a question would be read."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def read_allowance(word: str) -> tuple[str, str]:
    """Return credential ("" for none) and place of ``[CREDENTIAL@]PLACE[+FILE]``; an address stands for its place."""
    said, trusting, file = word.partition(f"{TRUSTING}file://")
    before, mark, after = said.partition("@")
    credential, place = (before, after) if mark and "://" not in before else ("", said)
    if not place or (mark and not before) or any(each.isspace() for each in word):
        raise BadInput(f"{OPTION} {word!r}: give HOST, HOST:PORT or s3://BUCKET, with CREDENTIAL@ before it if need be")
    if place.startswith(("http://", "https://")):
        place = place_of(place)
    elif "://" not in place:
        place = place.lower()
    return credential, f"{place}{trusting}{file}"
