"""Fields of a plan that are addresses, and what its values reach by them.

A field whose text may be opened as an address is annotated with an ``Address``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from audits.addresses import kind_of, place_of, remote, sent_to
from audits.credentials import WEB
from audits.home import expanded
from orchestrator.engine.plan.reach import Reach


def no_file(text: str) -> None:
    """Return that a text leads to no file that is written."""


def folder_at(text: str) -> Path:
    """Return the folder that a text names, ~ being that of the user."""
    return expanded(text)


@dataclass(frozen=True)
class Address:
    """Annotates a field of a plan whose text may be opened as an address, of one of ``schemes`` if there are any.

    ``sent``: from an address to the credentials of the environment that go there by themselves; ``token``: the path,
    from the field's section, of the field that names the variable of a token; ``trusts``: of the one that names a file
    of certificates by which a server is known. ``bare``: HOST:PORT without a scheme.
    ``writes``: from a text that is no address to the file or folder of this machine that is written by it.
    """

    sent: Callable[[str], str] = sent_to
    token: str = ""
    trusts: str = ""
    schemes: tuple[str, ...] = ()
    bare: bool = False
    writes: Callable[[str], Path | None] = no_file

    def reach(self, field: str, text: str, section: Mapping[str, Any]) -> Reach | None:
        """Return where the text of ``field`` leads, None if nowhere; ``section`` holds the fields beside it."""
        address = (text if ":" in text else "") if self.bare else remote(text)
        if not address and (file := self.writes(text)) is not None:
            return Reach(field, text, file.resolve().as_uri(), file=file.resolve())
        if not address or (self.schemes and kind_of(address) not in self.schemes):
            return None
        place = address.lower() if self.bare else place_of(address)
        above = field.rpartition(".")[0]
        by = (f"{above}.{self.trusts}", trusted) if (trusted := self.trusts and text_at(section, self.trusts)) else None
        if named := self.token and text_at(section, self.token):
            return Reach(field, text, place, named, f"{above}.{self.token}", trusts=by)
        return Reach(field, text, place, self.sent(address), trusts=by)


def tracking_login(address: str) -> str:
    """Return the login that MLflow, or the driver of a database, sends to a tracking server."""
    return "mlflow-login" if kind_of(address) in WEB else f"{kind_of(address)}-login"


def ray_token(address: str) -> str:
    """Return the token that Ray sends to a cluster."""
    return "ray-token"


def text_at(section: Any, path: str) -> str:
    """Return the text at a dotted path of plain values, "" if there is none."""
    for part in path.split("."):
        section = section.get(part) if isinstance(section, Mapping) else None
    return section if isinstance(section, str) else ""


def concerns(path: str, other: str) -> bool:
    """Say whether one of two dotted paths is that of the other or of a part of it."""
    return f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.")


def addresses_of(kind: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the dotted path of each field of a plan's class that is an address, or names its token or certificates."""
    for name, info in kind.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        marks = [mark for mark in info.metadata if isinstance(mark, Address)]
        yield from (path for _ in marks)
        yield from (f"{prefix}{each}" for mark in marks for each in (mark.token, mark.trusts) if each)
        for section in sections_in(info.annotation):
            yield from addresses_of(section, f"{path}.")


def reached(kind: type[BaseModel], values: Any, prefix: str = "") -> Iterator[Reach]:
    """Yield what the plain ``values`` of a section of class ``kind`` reach; whatever is misshapen is passed over."""
    for name, info in kind.model_fields.items() if isinstance(values, Mapping) else ():
        key = info.alias or name
        for index, value in entries(values.get(key)):
            path = f"{prefix}{key}{index}"
            for mark in info.metadata:
                if isinstance(mark, Address) and isinstance(value, str) and (found := mark.reach(path, value, values)):
                    yield found
            for section in sections_in(info.annotation):
                yield from reached(section, value, f"{path}.")


def entries(value: Any) -> list[tuple[str, Any]]:
    """Return the entries of a list with the ends of their paths; any other value as the only one."""
    return [(f".{index}", one) for index, one in enumerate(value)] if isinstance(value, list) else [("", value)]


def sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the sections that an annotation names: ``Section``, ``Section | None``, ``tuple[Section, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from sections_in(inner)
