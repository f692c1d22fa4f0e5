"""Sources of data sets: the request that names one, and the registry."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from audits.data.dataset import Dataset, Description
from audits.data.file_sets import EncodedSet
from audits.errors import BadInput, did_you_mean
from audits.home import expanded
from audits.registry import Registry

SYSTEM_DATASETS = Path("/usr/share/datasets")  # where Debian's dataset-* packages put theirs
ORCH_DATA = "ORCH_DATA"


@dataclass(frozen=True)
class Request:
    """One data set as a user names it: ``source[:place][?option=value&...]``, and the folder to look in."""

    name: str
    source: str
    place: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    root: Path | None = None

    def allow(self, *names: str) -> None:
        """Refuse options other than ``names``."""
        for option in self.options:
            if option not in names:
                known = f"known: {', '.join(names)}" if names else "it has none"
                raise BadInput(
                    f"data set {self.name!r}: unknown option {option!r}{did_you_mean(option, names)}; {known}"
                )

    def whole_number(self, option: str, default: int, least: int = 0) -> int:
        """Return the whole number given as ``option``, or ``default``."""
        text = self.options.get(option, str(default))
        if not text.isdecimal() or int(text) < least:
            raise BadInput(
                f"data set {self.name!r}: {option} is {text!r}; it must be a whole number of at least {least}"
            )
        return int(text)

    @property
    def is_elsewhere(self) -> bool:
        """Whether ``place`` is an address, and not one of a file of this machine."""
        return "://" in self.place and not self.place.startswith("file://")

    def local_path(self) -> Path:
        """Return ``place`` as a path, relative to ``root`` (or to the current folder)."""
        path = expanded(self.place)
        return path if self.root is None else self.root / path

    def folders(self) -> list[Path]:
        """Return the folders in which a named set is looked for: under ``root`` if given, else the usual places."""
        if self.root is not None:
            return [self.root, self.root / self.source]
        usual = [SYSTEM_DATASETS / self.source]
        return [Path(os.environ[ORCH_DATA]) / self.source, *usual] if os.environ.get(ORCH_DATA) else usual

    def places(self, *layouts: str) -> list[Path]:
        """Return the folders in which a set with a folder of its own, named as in ``layouts``, is looked for.

        Each of ``folders``, and the folder that ``ORCH_DATA`` names, may itself be that folder or hold it.
        """
        own = os.environ.get(ORCH_DATA) if self.root is None else None
        around = [*self.folders(), *([Path(own)] if own else [])]
        return [place for folder in around for place in (*(folder / layout for layout in layouts), folder)]


@dataclass(frozen=True)
class Source:
    """One kind of data set: how to describe it cheaply and how to read it.

    ``form`` is what a user writes (``folder:PATH?size=N``); ``description`` is one line for listings.
    ``encoded``: of images in files, reads names and labels alone.
    """

    form: str
    description: str
    describe: Callable[[Request], Description]
    load: Callable[[Request], Dataset]
    encoded: Callable[[Request], EncodedSet] | None = None

    @property
    def takes_place(self) -> bool:
        """Whether the name goes on after a colon."""
        return ":" in self.form


CATALOGUE: Registry[Source] = Registry("data set", "audits.data", own="audits.data.user:adapted", group="orch.data")


def parse(name: str, root: str | os.PathLike[str] | None = None) -> Request:
    """Take a data set's name apart; BadInput when its form is wrong (that its source exists is not checked)."""
    # the query of a file system's address (s3://...?region=...) belongs to that file system
    head, mark, query = name.rpartition("?") if "?" in name and "://" not in name else (name, "", "")
    options: dict[str, str] = {}
    if mark:
        try:
            options = dict(parse_qsl(query, strict_parsing=True))
        except ValueError:
            raise BadInput(f"data set {name!r}: {query!r} is not option=value") from None
    source, _, place = head.partition(":")
    return Request(name, source, place, options, None if root is None else expanded(root))
