"""A database file of MLflow that may have been made by somebody else: read by SQLite only where it does nothing itself.

Triggers, computed columns, keys that follow, and a journal beside the file could change where files go, after it was
looked at, or reach other files of this machine.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from audits.data.regular import opened
from audits.errors import BadInput
from audits.writing import TEMPORARY, require_own

WRITTEN = (
    "datasets", "experiment_tags", "experiments", "input_tags", "inputs", "latest_metrics", "logged_model_metrics",
    "logged_model_params", "logged_model_tags", "logged_models", "metrics", "params", "runs", "tags",
)  # fmt: skip
"""Tables of MLflow that tracking writes."""
INERT = {
    "table": re.compile(r"CREATE TABLE "),
    "index": re.compile(r"CREATE (UNIQUE )?INDEX |\Z"),
    "trigger": re.compile(r"CREATE TRIGGER [^;]*\bBEGIN\s+SELECT RAISE\(ABORT, '[^;']*'\);\s*END\s*\Z"),
}
"""What a database may hold, as SQLite writes it down: type → text. Of triggers only such as do nothing but refuse.

An index that SQLite makes by itself has no text.
"""
BESIDE = ("-journal", "-wal", "-shm")
"""Ends of the names of files that SQLite reads and writes beside a database."""
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The last bytes of a journal that names another one, and the first ones of every journal."""
PATIENCE = 20.0
"""Seconds to wait for another process that writes, as MLflow does."""


def make_database(file: Path) -> None:
    """Make a database of MLflow where there is none: by another name first, so that a kill leaves none half made.

    MLflow changes its tables step by step when it makes them, and cannot go on with what a kill left of that. Where the
    file system has no second names MLflow makes it in its place.
    """
    from mlflow import MlflowClient

    if os.path.lexists(file) or re.search("[?#%]", str(file.absolute())):  # the latter are no plain path in an address
        return
    part = file.absolute().with_name(f"{TEMPORARY}{secrets.token_hex(8)}-{file.name}")
    uri = f"sqlite:///{part}"
    try:
        MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments(max_results=1)
        with suppress(OSError):  # one that another process has made meanwhile, too
            os.link(part, file)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def opened_database(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database file that does nothing by itself; what is unfinished in it is undone.

    A transaction that a killed process began is rolled back, as MLflow would do it: only then is everything to be seen.
    Raises CannotWrite where the file, or one beside it, is a link, has another name elsewhere, or is none, BadInput for
    a database that acts by itself, cannot be read, or stays locked by another process.
    """
    file = file.resolve()
    for end in ("", *BESIDE):
        require_own(file.with_name(f"{file.name}{end}"))
    require_single_journal(file.with_name(f"{file.name}{BESIDE[0]}"))
    try:
        where = f"file:{quote(str(file))}?mode=rw"
        with closing(sqlite3.connect(where, uri=True, timeout=PATIENCE)) as database:
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            require_inert(database, file)
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter in the place of a message that is no text
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise BadInput(
                f"{file} has been locked by another process for {PATIENCE:g} s; run the same command again once it has "
                "ended, or track in another database"
            ) from None
        raise BadInput(
            f"{file} cannot be read as a database of MLflow ({error}), so nobody knows where it leads files; track in "
            "another database"
        ) from None


def require_single_journal(journal: Path) -> None:
    """Raise BadInput for a journal that names another journal, which SQLite would remove with it, whatever that is.

    Those of several databases that are written together do; MLflow writes one.
    """
    with suppress(FileNotFoundError), opened(journal) as stream:
        stream.seek(-min(len(JOURNAL_MAGIC), os.fstat(stream.fileno()).st_size), os.SEEK_END)
        if stream.read() == JOURNAL_MAGIC:
            raise BadInput(f"{journal} is no journal of MLflow: SQLite would remove the file that it names; remove it")


def require_inert(database: sqlite3.Connection, file: Path) -> None:
    """Raise BadInput for a database in which a write of tracking would change more than what is written.

    That are triggers but for those that only refuse, views and virtual tables, columns that are computed, and keys that
    follow a change.
    """
    for kind, name, text in database.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master"):
        if not (known := INERT.get(kind)) or not known.match(text):
            what = "virtual table" if text.upper().startswith("CREATE VIRTUAL") else kind.lower()
            raise BadInput(
                f"{file} has a {what} ({name}), which MLflow does not make: it could lead files elsewhere; track in "
                "another database, or remove it"
            )
    columns = database.execute(
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND c.hidden"
    )
    keys = database.execute(
        'SELECT m.name, k."from", k."table" FROM sqlite_master m, pragma_foreign_key_list(m.name) k '
        "WHERE m.type = 'table' AND k.on_update NOT IN ('NO ACTION', 'RESTRICT')"
    )
    emptied = database.execute(
        'SELECT m.name, k."from" FROM sqlite_master m, pragma_foreign_key_list(m.name) k '
        "WHERE m.type = 'table' AND k.on_delete NOT IN ('NO ACTION', 'RESTRICT', 'CASCADE')"
    )
    for table, column, *other in (*columns, *keys, *emptied):
        if {str(name).lower() for name in (table, *other)} & {*WRITTEN}:
            raise BadInput(
                f"{file} changes column {column} of table {table} by itself, which MLflow's does not: it could lead "
                "files elsewhere; track in another database"
            )
