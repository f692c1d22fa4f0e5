"""The user's permission for code of their own (``python:module:name``), asked for before it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from audits.errors import BadInput

PREFIX = "python:"
ALLOW = "ORCH_ALLOW_CODE"
"""Environment variable by which a user allows all code."""
Named = tuple[str, Path | None]
"""A name (``python:module:name``) and the folder in which its module is looked for (None: the current one)."""

MayRun = Callable[[Sequence[Named]], bool]
"""Says whether the code of all these names may run."""

_asked: list[MayRun] = []


def said_in_the_environment(named: Sequence[Named]) -> bool:
    """Return whether the user has allowed all code for this process (``ORCH_ALLOW_CODE=1``)."""
    return os.environ.get(ALLOW) == "1"


@contextmanager
def asking(may_run: MayRun) -> Iterator[None]:
    """Ask ``may_run`` before code is imported for as long as the block runs; nobody is asked otherwise.

    Who calls ``load`` with a name of his own means it. A command that was handed a plan file asks: a file may be
    anybody's. Its workers run what it has allowed.
    """
    _asked.append(may_run)
    try:
        yield
    finally:
        _asked.pop()


def who_is_asked() -> MayRun | None:
    """Return what ``asking`` asks just now; None while nobody is asked."""
    return _asked[-1] if _asked else None


def is_own(name: object) -> bool:
    """Return whether a name of a plan is that of code: ``python:module:name``."""
    return isinstance(name, str) and name.startswith(PREFIX)


def require_permission(named: Sequence[Named]) -> None:
    """Raise BadInput unless the code of all these names may run; names that are not those of code need none."""
    named = [(name, root) for name, root in dict.fromkeys(named) if is_own(name)]
    if not named or not _asked or _asked[-1](named):
        return
    modules = dict.fromkeys(repr(name.split(":")[1]) for name, _ in named)
    folders = dict.fromkeys(str(root or Path.cwd()) for _, root in named)
    raise BadInput(
        f"{', '.join(name for name, _ in named)} {'runs' if len(named) == 1 else 'run'} code of the "
        f"module{'s' if len(modules) > 1 else ''} {', '.join(modules)} (of {', '.join(folders)} or the Python path), "
        "and a plan may be anybody's: add --allow-code, or set ORCH_ALLOW_CODE=1, if you trust it; none of it was run"
    )


def require_permission_for_programs(files: Sequence[str]) -> None:
    """Raise BadInput unless ``files``, programs in TorchScript, may run: they do what whoever wrote them wants."""
    files = list(dict.fromkeys(files))
    if not files or not _asked or _asked[-1]([(file, None) for file in files]):
        return
    one = len(files) == 1
    raise BadInput(
        f"{', '.join(files)} {'is a program' if one else 'are programs'} (TorchScript), not weights alone, and "
        f"{'runs' if one else 'run'} what whoever made {'it' if one else 'them'} wrote: add --allow-code, or set "
        "ORCH_ALLOW_CODE=1, if you trust it; none of it was run"
    )
