"""The folder of a record of answers: what it says of its endpoint, and which of its files hold answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from audits.data.regular import content_of
from audits.errors import BadInput
from audits.plain_json import from_json

VERSION = 1
ABOUT = "endpoint.json"


def about_in(folder: Path) -> dict[str, Any]:
    """Return ``endpoint.json``: the endpoint, and how its answers were read last; raises BadInput for no such file."""
    try:
        found: dict[str, Any] = from_json(content_of(folder / ABOUT))
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder / ABOUT} cannot be read: {error}; give the folder of a record") from error
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise BadInput(f"{folder / ABOUT} is of another version than {VERSION}")
    return found


def folder_of(root: Path) -> Path:
    """Return the folder of an endpoint: ``root``, or the single such folder in it; raises BadInput without one."""
    folders = [root] if (root / ABOUT).is_file() else sorted(file.parent for file in root.glob(f"*/{ABOUT}"))
    if not folders:
        raise BadInput(f"{str(root)!r} holds no recorded answers; give the folder that was named as record")
    if len(folders) > 1:
        listed = "; ".join(f"{folder}: {about_in(folder)['endpoint']['served']}" for folder in folders[:5])
        raise BadInput(
            f"{str(root)!r} holds the answers of {len(folders)} endpoints; give one of their folders: {listed}"
        )
    return folders[0]


def parts_in(folder: Path) -> list[Path]:
    """Return the files of a record that hold answers."""
    names = (name for name in os.listdir(folder) if name.endswith(".parquet") and name[0] != ".")
    return [folder / name for name in sorted(names)]
