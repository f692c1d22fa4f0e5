"""The address at which a run is tracked: refused before the work where it cannot work."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from audits.addresses import database_file
from audits.credentials import mask, reveal
from audits.errors import BadInput, did_you_mean
from orchestrator.engine.run.output_folder import DATABASE

SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https")
ALLOWED = "sqlite:////absolute/file.db, http(s)://host:port, postgresql://…, mysql://…, mssql://…"
FIELD, VARIABLE = "tracking.uri", "MLFLOW_TRACKING_URI"
DATABRICKS = ("databricks", "databricks-uc", "uc")
"""Schemes of Databricks, of which MLflow takes the bare words as well."""
SERVER = re.compile(r"[\w.-]+:\d+(/.*)?")


def chosen_uri(uri: str | None) -> str | None:
    """Return the URI in use, masked: that of the plan, else of MLFLOW_TRACKING_URI; None where neither names one.

    Raises BadInput for one that cannot work; contacts no server.
    """
    name, chosen = (FIELD, uri) if uri else (VARIABLE, os.environ.get(VARIABLE))
    if not chosen:
        return None
    check_uri(chosen := mask(chosen), name)
    return chosen


def check_uri(uri: str, name: str = FIELD) -> None:
    """Raise BadInput for a tracking URI that cannot work (scheme, server address, folder); contacts no server.

    ``name``: the field or variable that gives it.
    """
    uri = mask(uri)
    given = f"{name} {uri!r}"
    parts = urlsplit(reveal(uri))
    scheme = parts.scheme.split("+")[0]
    if (scheme or uri) in DATABRICKS:
        raise BadInput(f"{given} is a workspace of Databricks, where orch does not track runs; allowed: {ALLOWED}")
    if scheme not in SCHEMES and SERVER.fullmatch(uri):
        raise BadInput(f"{given} names no scheme; write http://{uri}, or https://{uri}")
    if scheme == "file" or not scheme or len(scheme) == 1:  # the drive of a path
        raise _file_store(given, Path(unquote(parts.path) if scheme == "file" else uri), name)
    if scheme not in SCHEMES:
        raise BadInput(f"{given} has scheme {scheme!r}{did_you_mean(scheme, SCHEMES)}; allowed: {ALLOWED}")
    if scheme in ("http", "https") and not parts.hostname:
        raise BadInput(f"{given} names no host; write http://host:port")
    if scheme == "sqlite":
        if parts.netloc or (parts.path and not parts.path.startswith("/")):
            raise BadInput(
                f"{given} has no three slashes; write sqlite:///folder/file.db, or sqlite:////absolute/file.db"
            )
        file, options = database_file(reveal(uri)) or Path(), reveal(uri).partition("?")[2]
        if str(file).startswith("file:") or "uri" in dict(parse_qsl(options, keep_blank_values=True)):
            raise BadInput(f"{given} is an address within an address; write sqlite:////absolute/file.db")
        _check_sqlite(given, file)


def _file_store(given: str, folder: Path, name: str) -> BadInput:
    """Return the error of a folder of runs, with the database to take in its place."""
    database = folder.absolute().with_name("mlflow.db")
    way = "leave it out for a database in the output folder" if name == FIELD else "unset it"
    return BadInput(
        f"{given} is a file store, which MLflow refuses from 3.13 on; {way}, or give sqlite:///{database} "
        f"(mlflow migrate-filestore moves old runs there); also allowed: {ALLOWED.partition(', ')[2]}"
    )


def _check_sqlite(given: str, file: Path) -> None:
    """Refuse a database that does not name a file in a folder that can be written.

    So is one with ``..`` behind a name: where that is a link, MLflow takes both away, and the system follows it.
    """
    if ".." in [part for before, part in zip(file.parts, file.parts[1:], strict=False) if before != ".."]:
        raise BadInput(f"{given} has .. behind the name of a folder, which may be a link; write the path without it")
    if not file.name:
        raise BadInput(f"{given} names no file; write sqlite:////absolute/path/mlflow.db")
    if file.is_dir():
        raise BadInput(f"{given}: {file} is a folder; name a file in it, such as sqlite:///{file / 'mlflow.db'}")
    if file.exists() and not file.is_file():
        raise BadInput(f"{given}: {file} is a pipe or a device; name a file, or a new one")
    folder = file.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise BadInput(f"{given}: {file.parent} is not a folder that can be written")


def resolve_uri(uri: str | None, out: Path) -> str:
    """Return the URI in use, masked: the plan's, else MLFLOW_TRACKING_URI, else a SQLite database under ``out``.

    Raises BadInput for one that cannot work, such as that of a folder whose name an address cannot hold.
    """
    if chosen := chosen_uri(uri):
        return chosen
    check_uri(own := database_in(out))
    return own


def database_in(out: Path) -> str:
    """Return the URI, masked, of the database in an output folder, which need not exist yet."""
    file = out.resolve() / DATABASE
    if "?" in str(file) or unquote(str(file)) != str(file):
        raise BadInput(
            f"{file.parent} cannot hold the database of MLflow, in whose address a '?' or a '%41' means something "
            "else; give --out another name, or tracking.uri"
        )
    return mask(f"sqlite:///{file}")
