"""The named data sets: what there is, what is known of each, and reading one."""

from __future__ import annotations

import os

from audits.credentials import mask
from audits.data.dataset import Dataset, Description
from audits.data.file_sets import EncodedSet
from audits.data.source import CATALOGUE, Request, Source, parse
from audits.errors import BadInput

__all__ = ["CATALOGUE", "Dataset", "Description", "Source", "describe", "encoded", "load", "names"]


def names() -> list[str]:
    """Return the forms of all data set names, ``folder:PATH?size=N`` for example, sorted."""
    return [CATALOGUE[name].form for name in CATALOGUE]


def load(name: str, root: str | os.PathLike[str] | None = None) -> Dataset:
    """Read the data set ``name``, looked for under ``root`` when given, and in the usual places otherwise.

    BadInput when the name is unknown, the set is not there, or its files are unusable.
    """
    request, source = _find(name, root)
    return source.load(request)


def describe(name: str, root: str | os.PathLike[str] | None = None) -> Description:
    """Return what is known of the data set ``name`` without reading all of it, whether or not it is there."""
    request, source = _find(name, root)
    return source.describe(request)


def encoded(name: str, root: str | os.PathLike[str] | None = None) -> EncodedSet | None:
    """Return the images of the data set ``name`` as they are in their files; None where it is not made of files."""
    request, source = _find(name, root)
    return None if source.encoded is None else source.encoded(request)


def _find(name: str, root: str | os.PathLike[str] | None) -> tuple[Request, Source]:
    request = parse(mask(name), root)
    source = CATALOGUE[request.source]
    if source.takes_place != bool(request.place):
        raise BadInput(f"data set {name!r} is incomplete or too long; its form is {source.form}")
    return request, source
