"""The cost of finished work: seconds and bytes of the store's artefacts, by the kind of work."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.engine.store.store import Artefact, Store

# Fields of an artefact's document that decide how long it takes to make.
DECIDES_TIME = (
    "model",
    "recipe",
    "count",
    "method",
    "settings",
    "kind",
    "checkpoints",
    "modes",
    "search",
    "budget",
    "chunk",
    "attacks",
    "platform",
)


@dataclass(frozen=True)
class Pace:
    """Means over the artefacts of one kind: ``seconds`` to make one, ``size`` in bytes."""

    seconds: float
    size: float


class PastWork:
    """Reads a store's finished work, each stage once; ``trained``: documents of the plan's training jobs by key."""

    def __init__(self, store: Store, trained: Mapping[str, Mapping[str, Any]]) -> None:
        self.store = store
        self.trained = trained
        self._artefacts: dict[str, list[Artefact]] = {}

    def artefacts(self, stage: str) -> list[Artefact]:
        """Return the artefacts of a stage; damaged ones are passed over."""
        if stage not in self._artefacts:
            self._artefacts[stage] = list(self.store.artefacts(stage, on_damage=lambda *_: None))
        return self._artefacts[stage]

    def paces(self, stage: str) -> dict[str, Pace]:
        """Return what the work of a stage took, by kind; work whose time is not known is passed over."""
        found: dict[str, list[Artefact]] = {}
        for artefact in self.artefacts(stage):
            if artefact.seconds > 0:
                found.setdefault(self.kind(artefact.document), []).append(artefact)
        return {
            kind: Pace(
                statistics.fmean(artefact.seconds for artefact in alike),
                statistics.fmean(artefact.size for artefact in alike),
            )
            for kind, alike in found.items()
        }

    def kind(self, document: Mapping[str, Any]) -> str:
        """Return the part of a document that decides how long the work takes, as text."""
        found = {field: document[field] for field in DECIDES_TIME if field in document}
        groups = [group for role in document.get("original", {}).values() for group in role]
        key = document.get("trained") or next(iter(groups[0] if groups else []), "")
        if key:
            fitted = self.trained[key] if key in self.trained else self.stored.get(key, {})
            found["shadows"] = [len(group) for group in groups]
            found["trained"] = {field: fitted.get(field) for field in ("model", "recipe")}
        return json.dumps(found, sort_keys=True)

    @cached_property
    def stored(self) -> dict[str, Mapping[str, Any]]:
        """The documents of the store's trained models by key."""
        return {artefact.key: artefact.document for artefact in self.artefacts("train")}
