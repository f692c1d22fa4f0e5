"""A check that Python takes this project's packages from one place; nothing of theirs is imported to find out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds this project's packages."""
SENT = "py_modules_files"
"""Where a worker of Ray keeps the packages that a driver sends it, each in a folder of its own."""


def misplaced() -> str:
    """Return which of this project's packages Python takes from another place than this module, "" for none.

    Another distribution may have one of the same name; a checkout comes behind what is installed.
    """
    for name in ("actors", "audits", "tune_spaces"):
        spec = find_spec(name)
        places = [*(spec.submodule_search_locations or ()), spec.origin] if spec else ["nowhere"]
        root = Path(places[0] or "").resolve().parent
        sent = ROOT.parent.name == SENT and root.parent == ROOT.parent
        if root != ROOT and not sent:
            return (
                f"Python takes the package {name!r} from {places[0]}, but orch lies in {ROOT}: uninstall what has the "
                "same name, or install orch into an environment of its own"
            )
    return ""
