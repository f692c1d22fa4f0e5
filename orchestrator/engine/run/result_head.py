"""The part of result.json that all kinds of audits share: what was run, by which plan and which versions."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from orchestrator.engine.run.asked import asked_of

if TYPE_CHECKING:
    from orchestrator.engine.kind import Finished

SCHEMA = "orch.result/2"
PACKAGES = ("orch-audit", "torch", "torchvision", "ray", "mlflow", "numpy", "scipy", "scikit-learn", "pyarrow")


def head(finished: Finished) -> dict[str, Any]:
    """Return the fields that every result has; a kind may say more in ``settings``, ``warnings`` and ``notes``."""
    plan = finished.design.plan
    asked = asked_of(finished)
    return {
        "schema": SCHEMA,
        "name": finished.name,
        "kind": plan.kind,
        "seed": plan.seed,
        "settings": [{"setting": each.name, "overrides": dict(each.overrides)} for each in finished.settings],
        "warnings": list(plan.warnings),
        "notes": list(plan.notes),
        "population": dict(finished.counts),
        **({} if asked is None else {"served": asked}),
        **({"main": finished.main} if finished.main else {}),
        **finished.beside,
        "plan": plan.resolved(),
        "plan_hash": plan.plan_hash,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that take part."""
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
