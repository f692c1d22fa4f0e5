"""Users' own code that plans name: what a run needs of it, whether a worker has the same, and edits of it."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audits.errors import BadInput
from audits.home import expanded
from audits.own import sources
from audits.own.code import taken_apart
from audits.own.import_path import search_for, search_last
from audits.own.permission import Named, is_own
from orchestrator.engine.data import forget_data
from orchestrator.engine.jobs.code_version import forget_users_code, reached, source, tops_of


def follow_edits() -> None:
    """Forget users' modules if one was edited since it was imported, their versions, and the data that they returned.

    To be called where a command or a run begins, and never in the midst of one.
    """
    if sources.forget_edited():
        forget_users_code()
        forget_data()


def code_of(value: Any, root: Path | None = None) -> Iterator[Named]:
    """Yield every name of users' code in nested mappings and lists, and the ``root`` that stands beside it."""
    if isinstance(value, str):
        if is_own(value):
            yield value, root
    elif isinstance(value, Mapping):
        beside = value.get("root")
        for item in value.values():
            yield from code_of(item, expanded(beside) if isinstance(beside, str) else None)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from code_of(item)


@dataclass(frozen=True)
class OwnCode:
    """Code of users that plans reach: module → digest of its source, and the folders in which the driver found it."""

    versions: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    @property
    def in_main(self) -> str:
        """An object of ``__main__`` (a notebook, a script), which other processes cannot import; "" if none."""
        return next((module for module in self.versions if module.partition(".")[0] == sources.MAIN), "")

    @property
    def places(self) -> list[Path]:
        """The packages and files that must travel to other machines: those that are not installed."""
        tops = dict.fromkeys(module.partition(".")[0] for module in self.versions)
        return [place for top in tops if (place := sources.place_of(top)) is not None]

    def require(self) -> None:
        """Raise BadInput unless this process finds the same modules with the same sources.

        They are looked for on the Python path, then in the driver's folders, if there are such here.
        """
        for folder in reversed(self.folders):
            if Path(folder).is_dir():
                search_last(Path(folder))
        sources.shipped(module.partition(".")[0] for module in self.versions)
        for module, digest in self.versions.items():
            self.require_one(module, digest)

    def require_one(self, module: str, digest: str) -> None:
        """Raise BadInput unless ``module`` is here, and its source is that of ``digest``."""
        try:
            found = source(module, tops_of(tuple(self.versions))).code
        except (BadInput, RuntimeError):
            raise BadInput(
                f"module {module} is not on {socket.gethostname()}; install its package there, or keep it in the "
                "folder where the run is started, from which it travels to workers"
            ) from None
        if found != digest:
            raise BadInput(
                f"module {module} has another source on {socket.gethostname()} than where the run was started; "
                "install the same version of its package there (if it was edited meanwhile, start the run again)"
            )


def own_code(plans: Iterable[Mapping[str, Any]]) -> OwnCode:
    """Return the code of users that ``plans`` (plain values) reach."""
    found: dict[str, str] = {}

    def add(modules: tuple[str, ...]) -> None:
        """Add what ``modules`` reach."""
        for module in reached(modules):
            if not sources.is_ours(module):
                found[module] = source(module, tops_of(modules)).code

    for values in plans:
        for name, root in code_of(values):
            module, _ = taken_apart(name)
            search_for(module.partition(".")[0], Path.cwd() if root is None else root)
            add((module,))
        for name in sorted(set(texts_of(values))):
            add(sources.behind(name))
    folders = sources.homes(dict.fromkeys(module.partition(".")[0] for module in found))
    return OwnCode(dict(sorted(found.items())), tuple(str(folder) for folder in folders))


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text in nested mappings and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts_of(item)
