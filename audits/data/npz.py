"""``npz:PATH``: a NumPy file with the arrays ``inputs`` and ``labels``, and ``groups`` if points belong together."""

from __future__ import annotations

from audits.data.dataset import Dataset, Description
from audits.data.points import arrays_of
from audits.data.source import CATALOGUE, Request, Source
from audits.data.user import LAYOUT, checked, describe

HOW = "write it with numpy.savez(PATH, inputs=…, labels=…)"


def _load(request: Request) -> Dataset:
    request.allow(LAYOUT)
    path = request.local_path()
    if not path.is_file():
        raise describe(request, None, HOW).missing()
    return checked(request.name, arrays_of(path, request.name), request.options.get(LAYOUT))


def _describe(request: Request) -> Description:
    request.allow(LAYOUT)
    return describe(request, _load(request) if request.local_path().is_file() else None, HOW)


CATALOGUE.register("npz")(
    Source("npz:PATH?layout=channels_last", "a NumPy file of inputs and labels", _describe, _load)
)
