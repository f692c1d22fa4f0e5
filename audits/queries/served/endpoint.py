"""A served model's address, the request that it takes, and the place of the answers in its reply."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import torch

from audits.addresses import on_this_machine
from audits.credentials import keep_secret, mask, reveal
from audits.errors import BadInput
from audits.queries.served.json_path import Every, parsed

BATCH, ONE = "{inputs}", "{input}"
"""Marks in a template: the list of a request's inputs; one input."""
FORMS = ("inputs", "instances", "dataframe_split")


@dataclass(frozen=True)
class Endpoint:
    """An address that takes inputs as JSON by POST and replies with JSON.

    ``template``: the request's document, with the text ``"{inputs}"`` where the list of inputs belongs, or
    ``"{input}"`` for an endpoint that takes one input a request. ``item``: one input within that list, for endpoints
    that wrap each, such as ``{"image": "{input}"}``. ``answers``: the path to the list of answers (``json_path``), or
    to the one answer. ``encoding``: nested ``lists`` of numbers, one ``flat`` list an input, or ``png``, a base64 text
    of an image (C, H, W) or (H, W) whose ``value_range`` becomes 0…255, so that the server sees inputs rounded to 8
    bits. ``identity``: the name under which answers are recorded, the address by default; give another one when
    another model is served there.

    ``token_env``: the environment variable with the token of ``token_header`` (``Authorization: Bearer TOKEN``, the
    bare token in any other header). ``ca_file``: certificates to trust in place of the system's. ``plain``: allow http
    to another machine. ``timeout``: seconds for one reply; ``largest``: its bytes.
    """

    url: str
    template: Any = BATCH
    answers: str = "$"
    item: Any = ONE
    encoding: Literal["lists", "flat", "png"] = "lists"
    value_range: tuple[float, float] | None = None
    identity: str = ""
    token_env: str = ""
    token_header: str = "Authorization"
    ca_file: str = ""
    plain: bool = False
    timeout: float = 30.0
    largest: int = 64 * 2**20
    steps: tuple[str | int | Every, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", parsed(self.answers))
        parts = split(self.url)
        object.__setattr__(self, "url", mask(self.url))
        if parts.scheme == "http" and not self.plain and not on_this_machine(parts.hostname or ""):
            raise BadInput(f"{self.url} would send inputs unencrypted to another machine; use https, or allow plain")
        marks = [mark for mark in texts(self.template) if mark in (BATCH, ONE)]
        if len(marks) != 1 or list(texts(self.item)).count(ONE) != 1:
            raise BadInput(f"a template holds {BATCH!r} or {ONE!r} as a value once, and an item {ONE!r} once")
        if self.encoding not in ("lists", "flat", "png"):
            raise BadInput(f"encoding is {self.encoding!r}; it is lists, flat or png")
        if self.encoding == "png" and (self.value_range is None or self.value_range[0] >= self.value_range[1]):
            raise BadInput("encoding png needs value_range, (lowest, highest) of the inputs")

    @property
    def single(self) -> bool:
        """Whether a request holds one input."""
        return ONE in texts(self.template)

    @property
    def described(self) -> dict[str, Any]:
        """What the answers depend on, for the record; no credentials."""
        asked = {name: getattr(self, name) for name in ("template", "answers", "item", "encoding", "value_range")}
        return {"served": self.identity or self.url, **asked}

    def body(self, points: torch.Tensor) -> bytes:
        """Return the request for ``points`` (N, ...); N is 1 for a single endpoint."""
        values = [fill(self.item, ONE, value) for value in self.encoded(points)]
        document = fill(self.template, ONE, values[0]) if self.single else fill(self.template, BATCH, values)
        try:
            return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        except ValueError:
            raise BadInput("inputs hold NaN or infinity, which JSON does not know; ask finite inputs") from None

    def encoded(self, points: torch.Tensor) -> list[Any]:
        """Return each of ``points`` as it stands in a request; numbers with all their digits."""
        if self.encoding == "png":
            return [png(point, *self.value_range) for point in points]  # type: ignore[misc]  # checked above
        found: list[Any] = (points.flatten(1) if self.encoding == "flat" else points).tolist()
        return found

    def headers(self) -> dict[str, str]:
        """Return the headers of a request, with the token that the environment holds now."""
        found = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.token_env:
            token = os.environ.get(self.token_env, "").strip()
            if not token or not token.isascii() or not token.isprintable():
                wrong = "holds characters that no token has" if token else "is not set"
                raise BadInput(f"environment variable {self.token_env}, the token of {self.url}, {wrong}")
            keep_secret(token)
            found[self.token_header] = f"Bearer {token}" if self.token_header.lower() == "authorization" else token
        return found

    def address(self) -> SplitResult:
        """Return the address with its credentials, for a connection only."""
        return urlsplit(reveal(self.url))


def mlflow_endpoint(
    url: str,
    form: Literal["inputs", "instances", "dataframe_split"] = "inputs",
    columns: Sequence[str] | None = None,
    answers: str = "$.predictions",
    **settings: Any,
) -> Endpoint:
    """Return the ``/invocations`` of an MLflow scoring server at ``url``; ``settings`` are those of ``Endpoint``.

    ``form``: ``inputs`` and ``instances`` keep the inputs' shape; ``dataframe_split`` sends a row of numbers an input,
    with the names of ``columns`` if the model's signature has names.
    """
    if form not in FORMS:
        raise BadInput(f"form is {form!r}; it is one of {', '.join(FORMS)}")
    if not urlsplit(url).path.strip("/"):
        url = f"{url.rstrip('/')}/invocations"
    if form != "dataframe_split":
        return Endpoint(url, {form: BATCH}, answers, **settings)
    frame = {"data": BATCH} if columns is None else {"columns": list(columns), "data": BATCH}
    return Endpoint(url, {form: frame}, answers, encoding="flat", **settings)


def split(url: str) -> SplitResult:
    """Return the parts of an address that can be asked; raises BadInput, without credentials, for any other."""
    shown, url = mask(url), reveal(url)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or any(mark.isspace() for mark in url):
        raise BadInput(f"{shown!r} is no address of an endpoint; write http(s)://HOST:PORT/PATH")
    if "@" in parts.netloc:
        raise BadInput(f"{shown!r} holds credentials; put the token into an environment variable and name it token_env")
    return parts


def texts(value: Any) -> Iterator[str]:
    """Yield the texts of nested dicts and lists that are values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


def fill(template: Any, mark: str, value: Any) -> Any:
    """Return ``template`` with ``value`` in the place of ``mark``."""
    if isinstance(template, dict):
        return {key: fill(inner, mark, value) for key, inner in template.items()}
    if isinstance(template, list | tuple):
        return [fill(inner, mark, value) for inner in template]
    return value if isinstance(template, str) and template == mark else template


def png(point: torch.Tensor, low: float, high: float) -> str:
    """Return an image (C, H, W) or (H, W) with values in [low, high] as a base64 PNG of 8 bits a channel."""
    from PIL import Image

    image = point[None] if point.ndim == 2 else point
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise BadInput(f"an input of shape {tuple(point.shape)} is no image; png takes (H, W), (1, H, W) or (3, H, W)")
    if not bool(((image >= low) & (image <= high)).all()):
        raise BadInput(f"an image has values outside value_range {low:g}…{high:g}; give the range of the inputs")
    levels = ((image.double() - low) * (255 / (high - low))).round().to(torch.uint8).movedim(0, -1).cpu().numpy()
    file = io.BytesIO()
    Image.fromarray(levels[..., 0] if levels.shape[-1] == 1 else levels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
