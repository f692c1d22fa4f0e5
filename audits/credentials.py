"""Credentials inside addresses: masked wherever text is kept or shown, known only to what opens the address.

``mask`` turns ``s3://KEY:SECRET@bucket/x`` into ``s3://***@bucket/x`` and remembers the whole in this process.
Plans, stores, results, keys and messages hold the masked text alone; what opens a file system or a server calls
``reveal``. ``hide`` cleans text of other libraries, which knows the address as it is.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterator, Mapping
from typing import Any, overload
from urllib.parse import quote, unquote

from audits.errors import BadInput

MASK = "***"
PLAIN_USERS = ("abfs", "abfss", "file", "gcs", "gs", "hdfs", "mssql", "mysql", "postgresql", "sqlite", "wasb", "wasbs")
"""Schemes in which a word before @ without a password is a container or a user, and no secret."""
CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
"""Schemes in which the word before the password is a part of the place."""
WEB = ("http", "https")
SHORTEST = 4
"""Characters of a secret that is looked for in the text of others; a shorter one is part of many words."""

SCHEME = string.ascii_letters + string.digits + "+.-"
SECRET_OPTION = re.compile(r"secret|token|passw|pwd|key|signature|credential|auth|^sig$|^odbc_connect$", re.IGNORECASE)
SECRET_VARIABLE = re.compile(r"SECRET|TOKEN|PASSW|_KEY$")

_real: dict[str, str] = {}
_secrets: set[str] = set()


@overload
def mask(value: str) -> str: ...
@overload
def mask(value: Any) -> Any: ...
def mask(value: Any) -> Any:
    """Return a text, or all texts of nested dicts and lists, with ``***`` for the credentials in addresses.

    Masked texts are remembered, so that ``reveal`` in this process returns what was given; the last one given counts.
    """
    if isinstance(value, Mapping):
        return {mask(key): mask(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([mask(item) for item in value])
    if not isinstance(value, str):
        return value
    before, address = split_off(value)
    shown, secrets = masked(address)
    if secrets:
        _real[shown] = address
        _secrets.update(form for secret in secrets for form in forms(secret))
    return before + shown


def split_off(text: str) -> tuple[str, str]:
    """Return what stands before the first address in a text, and the address with all that follows; "" without one."""
    place = text.find("://")
    start = len(text[:place].rstrip(SCHEME)) if place >= 0 else len(text)
    return text[:start], text[start:]


def reveal(text: str) -> str:
    """Return the address, or the text that ends in one, as it was before ``mask``.

    Raises BadInput when this process does not know the credentials, or when they cannot be part of an address.
    """
    if not is_masked(text):
        return text
    if why := unusable_by(text):
        raise BadInput(f"{text!r}: {why}")
    before, shown = split_off(text)
    return before + _real[shown]


MALFORMED = (
    "the credentials hold characters that end an address; write / as %2F, ? as %3F, # as %23 and @ as %40, or put them "
    "into the environment"
)
UNKNOWN = (
    "its credentials are kept in no file, so *** stands for them; give the address again, or put the credentials into "
    "the environment (AWS_ACCESS_KEY_ID, MLFLOW_TRACKING_USERNAME, …) and write the address without ***@"
)


def is_masked(text: str) -> bool:
    """Return whether ``***`` stands for credentials in ``text``."""
    address = split_off(text)[1]
    return f"{MASK}@" in address or any(
        value == MASK for _, name, value in options(address) if SECRET_OPTION.search(name)
    )


def unusable_by(text: str) -> str:
    """Return why ``reveal`` cannot return the address in ``text``; "" if it can."""
    if not is_masked(text):
        return ""
    address = _real.get(split_off(text)[1])
    if address is None:
        return UNKNOWN
    return MALFORMED if malformed(address) else ""


def without_mask(text: str) -> str:
    """Return a masked text as it would be had the credentials been given in the environment."""
    return text.replace(f"://{MASK}@", "://")


def remembered() -> dict[str, str]:
    """Return what this process knows, masked address → address: for other processes, never for a file."""
    return dict(_real)


def remember(addresses: Mapping[str, str]) -> None:
    """Take over what another process knew (``remembered``)."""
    for address in addresses.values():
        mask(address)


def keep_secret(value: str) -> None:
    """Let ``hide`` mask a secret that no address holds, such as a token."""
    _secrets.update(forms(value))


def hide(text: str) -> str:
    """Return a message with all known secrets, secret variables of the environment and credentials in it masked."""
    own = {value for name, value in os.environ.items() if SECRET_VARIABLE.search(name.upper()) and len(value) >= 8}
    for secret in sorted(_secrets | own, key=len, reverse=True):
        text = text.replace(secret, MASK)
    words = re.split(r"(\s+)", text) if "://" in text else [text]
    return "".join("".join((before, masked(address)[0])) for before, address in map(split_off, words))


def masked(address: str) -> tuple[str, tuple[str, ...]]:
    """Return ``scheme://…`` with ``***`` for its credentials, and the secrets that were in it."""
    scheme, mark, rest = address.partition("://")
    kind = scheme.split("+")[0].lower()
    user, tail = credentials(kind, rest)
    secrets: list[str] = []
    if user and not user.endswith(MASK):
        name, colon, password = user.partition(":")
        shown = f"{name}:{MASK}" if colon and kind in CONTAINERS else MASK
        if colon or kind not in PLAIN_USERS:
            secrets += [user, *([password] if colon else []), *([name] if kind not in CONTAINERS else [])]
            user = shown
    parts = []
    for before, name, value in options(tail):
        hidden = value is not None and SECRET_OPTION.search(name) is not None
        secrets += [value] if hidden and value and value != MASK else []
        parts += [before, name, *([] if value is None else ["=", MASK if hidden and value else value])]
    return f"{scheme}{mark}{user}{'@' if user else ''}{''.join(parts)}", tuple(secret for secret in secrets if secret)


def options(address: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield the parts of an address between ?, &, ; and #: the mark before, a name, and what follows its = if any."""
    marks_and_parts = ["", *re.split(r"([?&;#])", address)]
    for before, part in zip(marks_and_parts[::2], marks_and_parts[1::2], strict=True):
        name, equals, value = part.partition("=")
        yield (before, name, value) if equals and before else (before, part, None)


def credentials(kind: str, rest: str) -> tuple[str, str]:
    """Return what stands before the @ of the host of an address, and the remainder.

    Secrets of AWS often hold a slash, which ends the host: such an address is unusable, and its secret a secret still.
    """
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in host:
        user = host.rpartition("@")[0]
    elif ":" in host and "@" in rest and not (kind in WEB and host.rpartition(":")[2].isdecimal()):
        user = rest.rpartition("@")[0]
    else:
        return "", rest
    return user, rest[len(user) + 1 :]


def malformed(address: str) -> bool:
    """Return whether the credentials in an address hold characters that end it."""
    scheme, _, rest = address.partition("://")
    return bool(re.search(r"[/?#@\\\s]", credentials(scheme.split("+")[0].lower(), rest)[0]))


def forms(secret: str) -> Iterator[str]:
    """Yield the ways in which an address may write a secret."""
    plain = unquote(secret)
    for form in (secret, plain, quote(plain, safe=""), quote(plain), quote(plain, safe="+=!$&'()*,;:~")):
        if len(form) >= SHORTEST:
            yield form
