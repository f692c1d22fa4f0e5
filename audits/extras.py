"""The command that installs a package which only some plans need."""

from __future__ import annotations

import re
from collections import Counter
from importlib.metadata import PackageNotFoundError, requires

OURS = "orch-audit"
OF_EXTRA = re.compile(r"([\w.-]+).*\bextra == ['\"]([\w.-]+)['\"]")


def command(package: str) -> str:
    """Return the command that installs ``package``: by the smallest of our extras that brings it, if there is one.

    In a checkout that is not installed nothing is known of extras, and the package is named itself.
    """
    try:
        entries = [found.groups() for entry in requires(OURS) or () if (found := OF_EXTRA.match(entry))]
    except PackageNotFoundError:
        entries = []
    sizes = Counter(extra for _, extra in entries)
    extra = min((extra for name, extra in entries if name == package), key=lambda extra: sizes[extra], default=None)
    return f"pip install {package}" if extra is None else f"pip install '{OURS}[{extra}]'"
