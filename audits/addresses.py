"""The place to which an address leads, as a permission names it, and whose credentials a library sends there."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from audits.credentials import CONTAINERS, WEB, reveal, split_off, without_mask

LOCAL = ("", "file", "sqlite")
"""Schemes of this machine's own files."""
BUCKETS = ("s3", "gs", "gcs", "abfs", "abfss")
"""Schemes of file systems in which the place of the host names a bucket or a container."""
FILE_SYSTEMS = (*BUCKETS, "file", "hdfs", "viewfs")
"""Schemes of the addresses that are opened as file systems. Others, of which pyarrow knows some, may lead on to places
that nothing in the address shows: ``fsspec+reference::file://`` to those in a file."""
CLOUDS = {"s3": "aws-keys", "gs": "google-login", "gcs": "google-login", "abfs": "azure-login", "abfss": "azure-login"}
"""Scheme → the credentials of the environment that pyarrow sends, as a permission calls them."""
ENDPOINT = "endpoint_override"
PLAIN = {"region": r"[a-z0-9-]+", "scheme": r"https?", ENDPOINT: r"([\w.-]+|\[[\da-f:.]+\])(:\d+)?"}
"""Options of a file system's address that lead nowhere else than they say; others may."""
AZURE = re.compile(r"[\w-]+(\.(dfs|blob)\.core\.windows\.net)?")


def remote(text: str) -> str:
    """Return the address in a text such as ``parquet:s3://bucket/x``; "" if it names files of this machine."""
    address = split_off(text)[1]
    return "" if kind_of(address) in LOCAL else address


def kind_of(address: str) -> str:
    """Return the scheme of an address without its driver (``mysql`` of ``mysql+pymysql://``); "" without one."""
    return address.partition("://")[0].split("+")[0].lower() if "://" in address else ""


def place_of(address: str) -> str:
    """Return the place to which an address leads: ``host``, ``host:port``, ``s3://bucket``.

    Port 443 of https is left out. The place of an address with options that may lead elsewhere is all of it, so that a
    permission is for what they say; it may hold ``***``. Credentials are no part of others.
    """
    kind, parts = kind_of(address), urlsplit(address)
    host = parts.netloc.rpartition("@")[2].lower()
    if kind in WEB:
        return host_and_port(parts) or host
    if endpoint := endpoint_of(parts):
        return endpoint
    if not is_plain(parts):
        return without_mask(address)
    container = parts.netloc.partition("@")[0].partition(":")[0] if kind in CONTAINERS and "@" in parts.netloc else ""
    return f"{kind}://{container}{'@' if container else ''}{host}"


def host_and_port(parts: SplitResult) -> str:
    """Return host and port of a web address, without the port where it is that of https; "" if there is no such."""
    try:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ""
    name = f"[{host}]" if ":" in host else host
    return name if (parts.scheme, port) == ("https", 443) else f"{name}:{port}"


def sent_to(address: str) -> str:
    """Return the credentials of the environment that a file system sends to where its address leads; "" for none.

    None is counted where they go to the cloud that they are of, or where the address holds others itself. Raises
    BadInput for a masked address that this process does not know.
    """
    parts, kind = urlsplit(address), kind_of(address)
    if kind in CONTAINERS:
        home = is_plain(parts) and AZURE.fullmatch(parts.netloc.rpartition("@")[2].lower()) is not None
    else:
        home = bool(urlsplit(reveal(address)).username) or (is_plain(parts) and not endpoint_of(parts))
    return "" if home else CLOUDS.get(kind, "")


def is_plain(parts: SplitResult) -> bool:
    """Say whether each option of a file system's address is given once and leads nowhere else than it says.

    A fragment is not plain: drivers of databases take what follows an @ in it for the host. Nor is a cloud's own server
    that is reached without encryption: anybody on the way passes for it.
    """
    found = parse_qsl(parts.query, keep_blank_values=True)
    once = len({name for name, _ in found}) == len(found) and not parts.fragment
    expected = not is_unencrypted(parts) or ENDPOINT in dict(found)
    return (
        once and expected and all(name in PLAIN and re.fullmatch(PLAIN[name], value.lower()) for name, value in found)
    )


def endpoint_of(parts: SplitResult) -> str:
    """Return the server that the options of a file system's address name, if all of them are plain; else "".

    As of web addresses, the port is left out where it is that of https.
    """
    server = dict(parse_qsl(parts.query)).get(ENDPOINT, "").lower() if is_plain(parts) else ""
    return f"{server}:80" if server and is_unencrypted(parts) and not re.search(r":\d+$", server) else server


def is_unencrypted(parts: SplitResult) -> bool:
    """Say whether the options of a file system's address ask for http."""
    return dict(parse_qsl(parts.query)).get("scheme", "").lower() == "http"


def database_file(address: str) -> Path | None:
    """Return the file of a SQLite database, as SQLAlchemy reads its address, without fragments; None for others."""
    if kind_of(address) != "sqlite":
        return None
    return Path(unquote(address.partition("://")[2].partition("?")[0].removeprefix("/")))


def on_this_machine(host: str) -> bool:
    """Say whether ``host`` is this machine's loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
