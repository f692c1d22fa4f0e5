"""Names of components of a membership audit, as they are reported."""

from __future__ import annotations

from orchestrator.report import words as shared

NAMES = {
    "lira_offline_moderated": "LiRA offline, moderated variance",
    "rmia_offline": "RMIA offline",
    "rmia_softened": "RMIA, softened",
    "qmia": "QMIA",
    "one_shadow": "one shadow (IAM)",
    "label_gap": "label gap",
    "boundary_distance": "boundary distance",
}


def words(name: str) -> str:
    """Return the name of an attack or an access as it is reported."""
    return shared.words(name, NAMES)
