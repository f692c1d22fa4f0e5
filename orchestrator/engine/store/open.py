"""Open the storage of a URI."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from orchestrator.engine.store.disk import Disk
from orchestrator.engine.store.object_storage import ObjectStorage
from orchestrator.engine.store.storage import Storage


def open_storage(uri: str) -> Storage:
    """Return the storage at a local path or a URI; raises StoreUnusable when there is no such kind of place."""
    scheme = urlsplit(uri).scheme if "://" in uri else ""
    if not scheme:
        return Disk(os.path.abspath(os.path.expanduser(uri)))
    if scheme == "file":
        return Disk(unquote(urlsplit(uri).path))

    return ObjectStorage(uri)
