"""The place where MLflow keeps the files of runs that are tracked in a database file: our own choice, or one allowed.

A database says itself where the files of an experiment and of a run go, and it may have been made by somebody else: it
comes with a run folder, or a plan names it. A server is allowed, or not, as a whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from audits.addresses import database_file, kind_of, place_of, sent_to
from audits.credentials import WEB, mask, reveal
from audits.errors import BadInput
from audits.owners import is_others, others_bits
from audits.writing import require_no_link, require_own
from orchestrator.engine.plan.reach import Reach, require_permission
from orchestrator.engine.run.output_folder import ARTIFACTS
from orchestrator.engine.run.tracking_database import BESIDE, opened_database
from orchestrator.engine.run.tracking_stopped import PARENT, tokens_in
from orchestrator.engine.run.tracking_uri import FIELD, VARIABLE, resolve_uri
from orchestrator.engine.store.trust import ALLOW, Trust

MODELS = "models"
"""The folder in that of an experiment where MLflow keeps models."""


class Kept(NamedTuple):
    """Where a database keeps files: those of an experiment, "" if there is none, and run id → those of a run."""

    location: str = ""
    runs: tuple[tuple[str, str], ...] = ()


def file_of(where: str) -> Path | None:
    """Return the file of a SQLite database at the address ``where``; None for a server."""
    return database_file(reveal(where))


def own_place(where: str, out: Path) -> Path | None:
    """Return the folder for the files of a new experiment: beside its database file; None: a server decides.

    Of a database that is a server it is in ``out``.
    """
    if kind_of(where) in WEB:
        return None
    file = file_of(where)
    return (out if file is None else file.parent).resolve() / ARTIFACTS


def require_places(named: str | None, experiment: str, out: Path) -> str:
    """Raise BadInput before any work, unless a run in ``out`` that is tracked at ``named`` may write where it would.

    ``named``: the plan's ``tracking.uri``. Nothing is changed but what a killed process left unfinished, and MLflow is
    not imported. Returns what is to be told of a folder that was moved (``experiment_in``), "" of others.
    """
    where = resolve_uri(named, out)
    file = file_of(where)
    if file is None or is_named_by_environment(named):
        return ""
    require_ours(file)
    if not file.is_file():
        return ""
    chosen = experiment_in(named, where, experiment, out)
    require_allowed(named, where, chosen, out, kept_in(file, chosen, tokens_in(out)))
    if chosen == experiment:
        return ""
    return (
        f"{out} has been moved since experiment {experiment!r} in its {file.name} was made: MLflow keeps the files of "
        f"that one in the former place; this run is tracked in experiment {chosen!r}"
    )


def require_ours(file: Path) -> None:
    """Raise BadInput where another user could change a database, which says where files and logins go.

    Its folder, the file and those beside it belong to this user or root. Others may write into them only where they
    cannot enter the folder, and into a folder such as /tmp, where only owners rename. Or the folder is allowed, as a
    store is.
    """
    if Trust.of(with_key=False).allows(str(file.parent)):
        return
    open_to_others = False
    for place in (file.parent, file, *(file.with_name(f"{file.name}{end}") for end in BESIDE)):
        with suppress(FileNotFoundError, NotADirectoryError):
            found = place.stat()
            if place == file.parent:
                open_to_others = bool(found.st_mode & others_bits(found, stat.S_IXGRP, stat.S_IXOTH))
            own = found.st_uid in (os.geteuid(), 0)
            sticky = place == file.parent and found.st_mode & stat.S_ISVTX
            if not own or (is_others(found) and open_to_others and not sticky):
                raise BadInput(
                    f"{place} {'can be written by others' if own else 'belongs to another user'}, who could lead what "
                    f"MLflow writes, and its login, elsewhere; track in a folder of your own (--out, tracking.uri), or "
                    f"set {ALLOW}={file.parent.resolve()} if you trust them"
                )


def experiment_in(named: str | None, where: str, experiment: str, out: Path) -> str:
    """Return the experiment of a run in ``out``: ``experiment``, or in a folder that was moved another beside it.

    MLflow writes an absolute place down for an experiment. In the database that orch makes in ``out`` itself, that of
    another folder's ``mlartifacts`` is where ``out`` was, and nothing is written there: ``orch-2``, ``orch-3``, … stand
    for ``orch`` then, the first that is new or has its place in ``out``.
    """
    file = file_of(where)
    if named or file is None or not file.is_file() or is_named_by_environment(named):
        return experiment
    own = own_place(where, out)
    names = chain([experiment], (f"{experiment}-{number}" for number in count(2)))
    return next(name for name in names if not is_former(folder_of(kept_in(file, name, ()).location), own))


def is_former(folder: Path | None, own: Path | None) -> bool:
    """Return whether a folder is one that orch makes for the files of MLflow, but in another place than its ``own``."""
    return folder is not None and folder.name == ARTIFACTS and folder != own


def is_named_by_environment(named: str | None) -> bool:
    """Return whether a database is that of MLFLOW_TRACKING_URI: the user's own word, whatever it says."""
    return not named and bool(os.environ.get(VARIABLE))


def look_again(named: str | None, where: str) -> None:
    """Raise as ``opened_database`` where the database ``where`` acts by itself now that MLflow has opened it."""
    file = file_of(where)
    if file is not None and not is_named_by_environment(named):
        with opened_database(file):
            pass


def require_allowed(named: str | None, where: str, experiment: str, out: Path, kept: Kept) -> None:
    """Raise BadInput unless files may be written where the database ``where`` says; see ``require_places``.

    A database that ``--set`` or the environment names is the user's own word, one in ``out`` or in a plan is not.
    """
    file = file_of(where)
    if file is None or is_named_by_environment(named):
        return
    own = tuple(dict.fromkeys((file.parent.resolve() / ARTIFACTS, out.resolve() / ARTIFACTS)))
    for folder in own:
        require_no_links(folder, [run for run, _ in kept.runs if run.isalnum()])
    words = f"{'tracking.uri' if named else file.name} has experiment {experiment!r}, which"
    found = [
        Reach(FIELD if named else "tracking.experiment", named or uri, *leads_to(uri), told=words)
        for uri in foreign(kept, own)
    ]
    require_permission(found, always=not named, otherwise="give another tracking.experiment")


def foreign(kept: Kept, own: Sequence[Path]) -> Iterator[str]:
    """Yield the places that are none of orch's ``own``, nor those of runs below the experiment's."""
    location = folder_of(kept.location) if kept.location else None
    if kept.location and location not in own:
        yield kept.location
    for run, uri in kept.runs:
        derived = [str(folder / run / "artifacts") for folder in (*own, location) if folder is not None]
        remote = f"{kept.location.rstrip('/')}/{run}/artifacts" if kept.location and location is None else None
        if not run.isalnum() or (str(folder_of(uri)) not in derived and uri != remote):
            yield uri


def folder_of(uri: str) -> Path | None:
    """Return the folder of this machine that an address names, without links above it; None if it names none.

    Only as orch writes it, ``Path.as_uri()``, or as a plain absolute path: others are read in more than one way.
    """
    path = Path(unquote(uri.removeprefix("file://")) if uri.startswith("file:///") else uri)
    if (
        "\0" in str(path)
        or not path.is_absolute()
        or uri not in (path.as_uri(), *([str(path)] if "%" not in uri else []))
    ):
        return None
    return path.parent.resolve() / path.name if path.name != ".." else path.resolve()


def leads_to(uri: str) -> tuple[str, str]:
    """Return the place that a permission names for files that go to ``uri``, and the credential that goes there."""
    folder = folder_of(uri)
    if folder is not None:
        return folder.as_uri(), ""
    masked, kind = mask(uri), kind_of(uri) or urlsplit(uri).scheme
    login = "mlflow-login" if kind in (*WEB, "mlflow-artifacts") else ""
    if "://" not in uri or kind == "file":
        return masked, login
    return place_of(masked), login or sent_to(masked)


def require_no_links(folder: Path, runs: Iterable[str]) -> None:
    """Raise CannotWrite where a link stands in place of a folder, or of a file of a run, into which MLflow would write.

    So it does for a pipe, and for a file that has another name elsewhere.
    """
    for place in (folder, folder / MODELS, *(folder / run for run in runs)):
        require_no_link(place)
    for above, below, files in chain.from_iterable(os.walk(folder / run, onerror=unless_absent) for run in runs):
        for name in below:
            require_no_link(Path(above, name))
        for name in files:
            require_own(Path(above, name))


def unless_absent(error: OSError) -> None:
    """Raise the error of a folder that is there and cannot be listed."""
    if not isinstance(error, FileNotFoundError):
        raise error


def kept_in(file: Path, experiment: str, tokens: Sequence[str]) -> Kept:
    """Return where a database file keeps files of an experiment, and of the runs (``orch.run``) of ``tokens``.

    Raises as ``opened_database``, and BadInput for a database of something else, whose tables MLflow would change.
    """
    with opened_database(file) as database:
        tables = {str(name).lower() for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if tables and "experiments" not in tables:
            raise BadInput(f"{file} is no database of MLflow, which would change what is in it; track in another one")
        if not tables:
            return Kept()
        found = database.execute(
            "SELECT experiment_id, artifact_location FROM experiments WHERE name = ?", (experiment,)
        ).fetchone()
        if found is None:
            return Kept()
        marks = ", ".join("?" * len(tokens))
        runs = database.execute(
            "SELECT run_uuid, artifact_uri FROM runs WHERE experiment_id = ? AND run_uuid IN ("
            f"SELECT run_uuid FROM tags WHERE key = 'orch.run' AND value IN ({marks}) UNION "
            f"SELECT run_uuid FROM tags WHERE key = '{PARENT}' AND value IN ("
            f"SELECT run_uuid FROM tags WHERE key = 'orch.run' AND value IN ({marks})))",
            (found[0], *tokens, *tokens),
        ).fetchall()
    return Kept(str(found[1] or ""), tuple((str(run), str(uri or "")) for run, uri in runs))
