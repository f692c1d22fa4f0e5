"""Names and one-line descriptions of everything that a plan or a command can name."""

from __future__ import annotations

import inspect
from typing import Any

from audits.registry import Registry

AUDITS = {"apollo": "Label-only attack on unlearned models (arXiv 2506.09923), online and offline, with controls."}


def listing(kind: str) -> list[tuple[str, str]]:
    """Return (name, description) of all audits, attacks, unlearners, models, data, sweeps or plans, sorted by name."""
    match kind:
        case "audits":
            return sorted(AUDITS.items())
        case "attacks":
            from audits.attacks import ATTACKS

            return described(ATTACKS)
        case "unlearners":
            from audits.unlearning import UNLEARNERS

            return described(UNLEARNERS)
        case "models":
            from audits.models import MODELS

            return described(MODELS)
        case "data":
            from audits.data.catalogue import CATALOGUE

            return [(CATALOGUE[name].form, CATALOGUE[name].description) for name in CATALOGUE]
        case "sweeps":
            from tune_spaces import SWEEPS

            return [(name, SWEEPS[name].title) for name in SWEEPS]
        case "plans":
            from orchestrator.plan_files import shipped_plans

            return [(name, first_comment(text)) for name, text in shipped_plans().items()]
    raise ValueError(f"no list of {kind}")


def described(registry: Registry[Any]) -> list[tuple[str, str]]:
    """Return the entries of a registry with the first line of their docstrings."""
    return [(name, first_docline(registry[name])) for name in registry]


def first_docline(entry: object) -> str:
    """Return the first line of an entry's docstring."""
    return (inspect.getdoc(entry) or "").partition("\n")[0]


def first_comment(text: str) -> str:
    """Return the comment at the head of a plan file."""
    line = text.partition("\n")[0]
    return line.removeprefix("#").strip() if line.startswith("#") else ""
