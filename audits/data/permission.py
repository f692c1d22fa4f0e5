"""Who is asked before the code of a ``python:`` data set runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from audits.errors import BadInput

MayRun = Callable[[str, Path | None], bool]
"""Says whether the code of the data set of this name, looked for in this folder (None: the current one), may run."""

_asked: list[MayRun] = []


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


def require_permission(name: str, root: Path | None) -> None:
    """Raise BadInput unless the code of the data set ``name`` (``python:module:function``) may run."""
    if name.startswith("python:") and _asked and not _asked[-1](name, root):
        raise BadInput(
            f"{name} runs code of the module {name.split(':')[1]!r} (of {root or Path.cwd()} or the Python path), and "
            "a plan may be anybody's: add --allow-code, or set ORCH_ALLOW_CODE=1, if you trust it; none of it was run"
        )
