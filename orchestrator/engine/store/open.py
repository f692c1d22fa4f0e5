"""Open the storage of a URI."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from audits.addresses import BUCKETS, FILE_SYSTEMS
from audits.credentials import mask
from audits.errors import did_you_mean
from orchestrator.engine.store.disk import Disk
from orchestrator.engine.store.faults import StoreUnusable
from orchestrator.engine.store.object_storage import ObjectStorage
from orchestrator.engine.store.patience import LIMIT
from orchestrator.engine.store.storage import Storage
from orchestrator.engine.store.trust import Trust


def open_storage(uri: str, patience: float = LIMIT, trust: Trust | None = None) -> Storage:
    """Return the storage at a local path or a URI; raises StoreUnusable when there is no such kind of place.

    ``patience``: seconds for which a request is made again. ``trust``: what the user has said; None: the environment.
    """
    require_place(uri)
    scheme = urlsplit(uri).scheme if "://" in uri else ""
    if scheme in ("", "file"):
        root = unquote(urlsplit(uri).path) if scheme else os.path.abspath(os.path.expanduser(uri))
        return Disk(root, allowed=(trust or Trust.of()).allows(root))
    return ObjectStorage(uri, patience)


def require_place(uri: str) -> None:
    """Raise StoreUnusable for a URI that can be no store, by its text alone (credentials in it are masked)."""
    if "://" not in uri:
        return
    scheme, _, rest = uri.partition("://")
    host = rest.partition("?")[0].partition("/")[0].rpartition("@")[2]
    problem = ""
    if scheme not in FILE_SYSTEMS:
        problem = (
            f"there are no stores of scheme {scheme!r}{did_you_mean(scheme, FILE_SYSTEMS)}; give a local path or a URI "
            f"such as s3://bucket/folder (schemes: {', '.join(FILE_SYSTEMS)})"
        )
    elif scheme in BUCKETS and not host:
        problem = f"it names no bucket; write {scheme}://bucket/folder"
    if problem:
        raise StoreUnusable(f"store {mask(uri)} cannot be opened: {problem}")
