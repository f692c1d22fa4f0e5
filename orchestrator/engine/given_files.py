"""Files that a plan's target names: their sha256, by which keys know them, and where a served one's answers lie."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from audits.data.regular import opened
from audits.errors import BadInput
from audits.home import expanded
from audits.queries.served.record_folder import ABOUT, folder_of, parts_in
from audits.targets.folders import is_divided, weight_files
from audits.targets.forms import path_of
from orchestrator.engine.store.places import ANSWERS
from orchestrator.engine.store.store import default_store_uri

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.plan.served import Served
    from orchestrator.engine.plan.target import Target

STAGE = "given"
"""Of the jobs that bring the files in."""
READ_AT_ONCE = 2**22

P = TypeVar("P", bound="BasePlan")


def target_of(plan: Any) -> Target | None:
    """Return the section ``target`` of a plan, if its kind knows one and it is there."""
    found: Target | None = getattr(plan, "target", None)
    return found if hasattr(found, "sha256") else None


def with_digests(plan: P) -> P:
    """Return the plan with the sha256 of every file of its target, and the folder of a served one's record.

    Plans without a target are returned as they are.

    Raises BadInput for a file that cannot be read, and for one that is not the one that the plan was written for. A
    file that is gone will do where the plan knows its sha256: the store may have what it held.
    """
    target = target_of(plan)
    if target is None:
        return plan
    found = {name: digest_of(name, target.sha256.get(name), target.is_record(name)) for name in target.files}
    changes: dict[str, Any] = {} if found == target.sha256 else {"target.sha256": found}
    if target.served is not None and target.form() == "address":
        record = record_of(plan, target.served)
        changes |= {} if record == target.served.record else {"target.served.record": record}
    return plan.changed(changes) if changes else plan


def record_of(plan: BasePlan, served: Served) -> str:
    """Return the folder in which a served model's answers are kept; raises BadInput where the plan must name it."""
    if served.record is not None:
        return str(expanded(served.record).absolute())
    store = plan.compute.store or default_store_uri()
    kept = answers_in(store)
    if plan.compute.address or kept is None:
        where = f"at {plan.compute.address}" if plan.compute.address else f"beside the store {store}"
        raise BadInput(
            f"target.served.record is missing: answers are recorded in a folder, and none is known {where}; name one "
            "that all workers share"
        )
    return kept


def answers_in(store: str) -> str | None:
    """Return the folder in which a store on this machine keeps answers of served models; None for other stores.

    Raises BadInput where it is a link: whoever has made the store may have made it.
    """
    parts = urlsplit(store) if "://" in store else None
    if parts and parts.scheme != "file":
        return None
    kept = Path(os.path.abspath(expanded(unquote(parts.path) if parts else store)), ANSWERS)
    if kept.is_symlink():
        raise BadInput(f"{kept} is a link, and answers would be written where it leads; name target.served.record")
    return str(kept)


def digest_of(name: str, known: str | None = None, record: bool = False) -> str:
    """Return the sha256 (hex) of a file, whichever part is named; ``known``: what it must be, taken if it is gone.

    ``record``: it is the folder of a record. What lies in a folder does not say what it is.
    """
    path = path_of(name)
    try:
        about = path.stat()
        if record and path.is_dir():
            folder = folder_of(path)
            return matching(name, parts_sha256(folder, [folder / ABOUT, *parts_in(folder)]), known)
        if is_divided(path):
            return matching(name, parts_sha256(path, weight_files(path, str(path))), known)
    except OSError as error:
        if known is not None:
            return known
        raise BadInput(f"target: {name} cannot be read: {error.strerror or error}") from None
    return matching(name, file_sha256(path, state_of(about)), known)


def matching(name: str, found: str, known: str | None) -> str:
    """Return the sha256 that was found; raises BadInput where the plan was written for another one."""
    if known is not None and found != known:
        raise BadInput(
            f"target: {name} is not the file that the plan was written for (its sha256 begins with {found[:12]}, that "
            f"of the plan, target.sha256, with {known[:12]}); give that file, or remove target.sha256 to audit this one"
        )
    return found


def parts_sha256(path: Path, files: Iterable[Path]) -> str:
    """Return the sha256 of the names and contents of ``files``: those of a record, or of a model in several.

    ``path``: their folder, or one of the files of the model.
    """
    found = hashlib.sha256()
    folder = path if path.is_dir() else path.parent
    for file in files:
        found.update(f"{file.relative_to(folder)} {file_sha256(file, state_of(file.stat()))}\n".encode())
    return found.hexdigest()


def state_of(about: os.stat_result) -> tuple[int, ...]:
    """Return what changes with a file: which one it is, its length, and its times, of which one can be set."""
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


@cache
def file_sha256(path: Path, state: tuple[int, ...]) -> str:
    """Return the sha256 of a file, read once as long as its state stays."""
    found = hashlib.sha256()
    try:
        with opened(path) as file:
            while part := file.read(READ_AT_ONCE):
                found.update(part)
    except OSError as error:
        raise BadInput(f"target: {path} cannot be read: {error.strerror or error}") from None
    return found.hexdigest()
