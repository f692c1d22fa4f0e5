"""Where a run is tracked: the address in use, refused before the work where it cannot work."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from audits.credentials import mask, reveal
from audits.errors import BadInput, did_you_mean

SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https")


def check_uri(uri: str | None) -> None:
    """Raise BadInput for a tracking URI that cannot work (scheme, server address, folder); contacts no server."""
    if uri is None:
        return
    uri = mask(uri)
    parts = urlsplit(reveal(uri))
    scheme = parts.scheme.split("+")[0]
    if scheme not in SCHEMES:
        shown = "a plain path" if not scheme or len(scheme) == 1 else f"scheme {scheme!r}"
        raise BadInput(
            f"tracking.uri {uri!r} has {shown}{did_you_mean(scheme, SCHEMES)}; "
            "allowed: sqlite:////absolute/file.db, http(s)://host:port, postgresql://…, mysql://…, mssql://…"
        )
    if scheme in ("http", "https") and not parts.hostname:
        raise BadInput(f"tracking.uri {uri!r} names no host; write http://host:port")
    if scheme == "sqlite":
        _check_sqlite(uri, Path(parts.path.removeprefix("/")))


def _check_sqlite(uri: str, file: Path) -> None:
    """Refuse a database that does not name a file in a folder that can be written."""
    if not file.name:
        raise BadInput(f"tracking.uri {uri!r} names no file; write sqlite:////absolute/path/mlflow.db")
    folder = file.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise BadInput(f"tracking.uri {uri!r}: {file.parent} is not a folder that can be written")


def resolve_uri(uri: str | None, out: Path) -> str:
    """Return the URI in use, masked: the plan's, else MLFLOW_TRACKING_URI, else a SQLite database under ``out``.

    Raises BadInput for one that cannot work, such as that of a folder whose name an address cannot hold.
    """
    chosen = uri or os.environ.get("MLFLOW_TRACKING_URI")
    if not chosen:
        file = out.resolve() / "mlflow.db"
        if "?" in str(file) or unquote(str(file)) != str(file):
            raise BadInput(
                f"{file.parent} cannot hold the database of MLflow, in whose address a '?' or a '%41' means something "
                "else; give --out another name, or tracking.uri"
            )
        chosen = f"sqlite:///{file}"
    check_uri(chosen := mask(chosen))
    return chosen
