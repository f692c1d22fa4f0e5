"""A small file that a driver leaves in its store: a worker that does not find it looks at another store."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from audits.errors import BadInput
from orchestrator.engine.store.faults import StoreSilent
from orchestrator.engine.store.places import PROBES

if TYPE_CHECKING:
    from orchestrator.engine.store.store import Store


def write_probe(store: Store) -> str:
    """Leave a probe in ``store`` and return its token."""
    token = secrets.token_hex(8)
    store.storage.publish(PROBES, {f"{token}.json": json.dumps({"host": socket.gethostname()}).encode()})
    return token


def check_probe(store: Store, token: str) -> None:
    """Read the probe ``token``; raises BadInput where it is not: this machine sees another store than the driver."""
    try:
        store.storage.read(_path(token))
    except FileNotFoundError:
        raise BadInput(
            f"compute.store: the store {store.storage.place} as {socket.gethostname()} sees it is not the one of the "
            "machine where the run was started; give a store that all machines reach: s3://bucket/folder or a folder "
            "that they share"
        ) from None


def drop_probe(store: Store, token: str) -> None:
    """Remove the probe ``token``; one that is gone already is no error."""
    store.storage.remove_file(_path(token))


@contextmanager
def probed(store: Store) -> Iterator[str]:
    """Leave a probe in ``store`` for as long as the context lasts; yields its token."""
    token = write_probe(store)
    try:
        yield token
    finally:
        with suppress(BadInput, StoreSilent):  # what ended the run counts, not the file that it leaves
            drop_probe(store, token)


def _path(token: str) -> str:
    return f"{PROBES}/{token}.json"
