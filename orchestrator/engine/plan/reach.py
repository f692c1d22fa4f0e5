"""A place that a plan reaches beyond this machine, what is sent there, and who is asked before that happens."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from audits.addresses import kind_of
from audits.credentials import MASK
from audits.errors import BadInput

OPTION, VARIABLE = "--allow-addresses", "ORCH_ALLOW_ADDRESSES"
TRUSTING = "+"
"""Between a place and the file of certificates by which it is known, in a permission."""
DATABASES = (".db", ".sqlite", ".sqlite3")
"""Ends of the names of databases that a plan may have orch write unasked."""
LOGINS = {
    "aws-keys": "the AWS credentials",
    "google-login": "the Google Cloud credentials",
    "azure-login": "the Azure credentials",
    "ray-token": "the token of Ray",
    "mlflow-login": "the login of MLflow",
}
"""Credentials that a library finds in the environment by itself, as permissions call them, in words."""


@dataclass(frozen=True)
class Reach:
    """A place that a plan names in ``field`` by ``text``, masked, and the credential that is sent there, "" for none.

    ``credential``: the name of an environment variable, which ``token_field`` of the plan gives, or one of ``LOGINS``.
    ``told``: what leads there, in words, if it is not the field itself. ``file``: what it writes on this machine.
    ``trusts``: a field and its text, the file of certificates by which the server is known: who has their key passes
    for it.
    """

    field: str
    text: str
    place: str
    credential: str = ""
    token_field: str = ""
    told: str = ""
    file: Path | None = None
    trusts: tuple[str, str] | None = None

    @property
    def allowance(self) -> tuple[str, str]:
        """Credential, "" for none, and place, with the whole path of the file that is trusted behind it."""
        return self.credential, self.place + (
            f"{TRUSTING}{Path(self.trusts[1]).resolve().as_uri()}" if self.trusts else ""
        )

    @property
    def permission(self) -> str:
        """What a user gives to allow it: PLACE, or CREDENTIAL@PLACE, each with +FILE behind it if one is trusted."""
        return "@".join(filter(None, self.allowance))

    def __str__(self) -> str:
        sent = f"what {self.credential} holds" if self.token_field else LOGINS.get(self.credential, self.credential)
        does = "writes" if self.file else "reaches"
        text = f"{self.told or self.field} {does} {self.place}{f' and sends it {sent}' if sent else ''}"
        text += f", trusting the certificates in {self.trusts[1]} ({self.trusts[0]})" if self.trusts else ""
        return "".join(mark if mark.isprintable() else "?" for mark in text)


def leaving(found: Iterable[Reach], folders: Sequence[Path]) -> list[Reach]:
    """Return those places that are no files in one of these folders, where a plan may have orch write."""
    own = [folder.resolve() for folder in folders]
    return [each for each in found if not any(lies_openly(each, folder) for folder in own)]


def lies_openly(found: Reach, folder: Path) -> bool:
    """Say whether what is written is a file or folder in ``folder`` that is nothing but what a plan says it is.

    Programs read hidden files by their names, and others by their endings, whatever else these hold: a plan chooses
    texts in a database (``.ssh/authorized_keys2``, ``startup.pth``).
    """
    if found.file is None or not found.file.is_relative_to(folder):
        return False
    hidden = any(part.startswith(".") for part in found.file.relative_to(folder).parts)
    return not hidden and (kind_of(found.text) != "sqlite" or found.file.suffix in DATABASES)


MayReach = Callable[[Sequence[Reach]], Sequence[Reach]]
"""Returns those of the places that may not be reached."""

_asked: list[MayReach] = []


@contextmanager
def asking(may_reach: MayReach) -> Iterator[None]:
    """Ask ``may_reach`` about what plans reach for as long as the block runs; nobody is asked otherwise.

    Who calls ``load_plan`` from Python means the plan. A command asks: a plan file may be anybody's. Its workers do
    what it has allowed.
    """
    _asked.append(may_reach)
    try:
        yield
    finally:
        _asked.pop()


def who_is_asked() -> MayReach | None:
    """Return what ``asking`` asks just now; None while nobody is asked."""
    return _asked[-1] if _asked else None


def require_permission(found: Sequence[Reach], *, always: bool = False, otherwise: str = "") -> None:
    """Raise BadInput unless all these places may be reached.

    ``always``: refuse them, too, where nobody is asked, because no plan names them. ``otherwise``: another way out.
    """
    refused = _asked[-1](found) if found and _asked else found if always else ()
    if not refused:
        return
    if hidden := next((reach for reach in refused if MASK in reach.place), None):
        raise BadInput(
            f"{hidden.field} is {hidden.text!r}: *** hides where that leads, and a plan may be anybody's; give it "
            f"yourself if you trust it: --set {hidden.field}=…"
        )
    words = list(dict.fromkeys(quoted(reach.permission) for reach in refused))
    more = " ".join(reach.permission for reach in refused) if len(words) > 1 else ""
    whose = "it may be anybody's" if otherwise else "a plan may be anybody's"
    other = f"{otherwise}, " if otherwise else ""
    told = "; ".join(dict.fromkeys(map(str, refused)))
    raise BadInput(
        f"{told}: {whose}; {other}add {' '.join(f'{OPTION} {word}' for word in words)}"
        f", or set {VARIABLE}={quoted(more) if more else words[0]}, if you trust it; nothing was contacted"
    )


def quoted(word: str) -> str:
    """Return a word as a shell takes it, on one line whatever it holds."""
    return shlex.quote(word) if word.isprintable() else repr(word)
