"""Credentials inside addresses: masked wherever text is kept or shown, known only to what opens the address.

``mask`` turns ``s3://KEY:SECRET@bucket/x`` into ``s3://***@bucket/x`` and remembers the whole in this process.
Plans, stores, results, keys and messages hold the masked text alone; what opens a file system or a server calls
``reveal``. ``hide`` cleans text of other libraries, which knows the address as it is.
"""

from __future__ import annotations

import os
import re
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

ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://.*", re.DOTALL)
ADDRESS_IN_TEXT = re.compile(r"[A-Za-z][\w+.-]*://\S+")
SECRET_OPTION = re.compile(
    r"([?&;#](?:[^=&;#\s]*(?:secret|token|passw|pwd|key|signature|credential|auth)[^=&;#\s]*|sig|odbc_connect)=)"
    r"([^&;#]+)",
    re.IGNORECASE,
)
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
    found = ADDRESS.search(value) if isinstance(value, str) else None
    if found is None:
        return value
    address = found.group()
    shown, secrets = masked(address)
    if secrets:
        _real[shown] = address
        _secrets.update(form for secret in secrets for form in forms(secret))
    return value[: found.start()] + shown


def reveal(text: str) -> str:
    """Return the address, or the text that ends in one, as it was before ``mask``.

    Raises BadInput when this process does not know the credentials, or when they cannot be part of an address.
    """
    found = ADDRESS.search(text)
    if found is None or not is_masked(text):
        return text
    address = _real.get(found.group())
    if address is None:
        raise BadInput(f"{text!r}: {UNKNOWN}")
    if malformed(address):
        raise BadInput(
            f"{text!r}: the credentials hold characters that end an address; write / as %2F, ? as %3F, # as "
            "%23 and @ as %40, or put them into the environment"
        )
    return text[: found.start()] + address


UNKNOWN = (
    "its credentials are kept in no file, so *** stands for them; give the address again, or put the credentials into "
    "the environment (AWS_ACCESS_KEY_ID, MLFLOW_TRACKING_USERNAME, …) and write the address without ***@"
)


def is_masked(text: str) -> bool:
    """Return whether ``***`` stands for credentials in ``text``."""
    return f"{MASK}@" in text.partition("://")[2] or any(value == MASK for _, value in SECRET_OPTION.findall(text))


def is_known(text: str) -> bool:
    """Return whether ``reveal`` can return the address in ``text``."""
    found = ADDRESS.search(text)
    return found is None or not is_masked(text) or found.group() in _real


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


def hide(text: str) -> str:
    """Return a message with all known secrets, secret variables of the environment and credentials in it masked."""
    own = {value for name, value in os.environ.items() if SECRET_VARIABLE.search(name.upper()) and len(value) >= 8}
    for secret in sorted(_secrets | own, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return ADDRESS_IN_TEXT.sub(lambda found: masked(found.group())[0], text)


def masked(address: str) -> tuple[str, tuple[str, ...]]:
    """Return ``scheme://…`` with ``***`` for its credentials, and the secrets that were in it."""
    scheme, _, rest = address.partition("://")
    kind = scheme.split("+")[0].lower()
    user, tail = credentials(kind, rest)
    secrets: list[str] = []
    if user and not user.endswith(MASK):
        name, colon, password = user.partition(":")
        shown = f"{name}:{MASK}" if colon and kind in CONTAINERS else MASK
        if colon or kind not in PLAIN_USERS:
            secrets += [user, *([password] if colon else []), *([name] if kind not in CONTAINERS else [])]
            user = shown

    def option(found: re.Match[str]) -> str:
        if found.group(2) != MASK:
            secrets.append(found.group(2))
        return f"{found.group(1)}{MASK}"

    tail = SECRET_OPTION.sub(option, tail)
    return f"{scheme}://{user}{'@' if user else ''}{tail}", tuple(secret for secret in secrets if secret)


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
    return bool(re.search(r"[/?#@\s]", credentials(scheme.split("+")[0].lower(), rest)[0]))


def forms(secret: str) -> Iterator[str]:
    """Yield the ways in which an address may write a secret."""
    plain = unquote(secret)
    for form in (secret, plain, quote(plain, safe=""), quote(plain), quote(plain, safe="+=!$&'()*,;:~")):
        if len(form) >= SHORTEST:
            yield form
