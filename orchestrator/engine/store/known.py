"""A run's knowledge of its store: each stage's index is read once, its listing is made once, and only if need be."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from orchestrator.engine.store.faults import StoreFull, StoreUnusable
from orchestrator.engine.store.index import read_index, write_index
from orchestrator.engine.store.store import Store


class Made(Protocol):
    """A job that is done: its stage and key."""

    @property
    def stage(self) -> str: ...

    @property
    def key(self) -> str: ...


class StageKeys:
    """The keys of the finished artefacts of one stage; the store is listed for the first one that is not known."""

    def __init__(self, store: Store, stage: str) -> None:
        self.store = store
        self.stage = stage
        self.keys: set[str] | None = None
        self.indexed: frozenset[str] = frozenset()
        self.added: set[str] = set()
        self.listed = False

    def __contains__(self, key: object) -> bool:
        known = self.known()
        if key in known or self.listed:
            return key in known
        self.keys, self.listed = self.store.keys(self.stage) | self.added, True
        return key in self.keys

    def known(self) -> set[str]:
        """Return the keys that are known by now."""
        if self.keys is None:
            self.indexed = read_index(self.store.storage, self.stage)
            self.keys = {*self.indexed, *self.added}
        return self.keys

    def add(self, key: str) -> None:
        """Note that an artefact was made."""
        self.known().add(key)
        self.added.add(key)

    def drop(self, key: str) -> None:
        """Remove an artefact from the store."""
        self.known().discard(key)
        self.store.drop(self.stage, key)
        self.added.discard(key)
        self.indexed = frozenset()

    def publish(self) -> None:
        """Write the index anew if more, or less, is known than it says."""
        if self.keys and self.keys != self.indexed:
            write_index(self.store.storage, self.stage, self.keys)
            self.indexed = frozenset(self.keys)


class Known:
    """What a run knows of its store; ``stages`` maps the name of each stage to its keys."""

    def __init__(self, store: Store, stages: Iterable[str]) -> None:
        self.store = store
        self.stages = {stage: StageKeys(store, stage) for stage in stages}

    def add(self, jobs: Iterable[Made]) -> None:
        """Note that ``jobs`` are done."""
        for job in jobs:
            self.stages[job.stage].add(job.key)

    def drop(self, stage: str, key: str) -> None:
        """Remove an artefact from the store."""
        self.stages[stage].drop(key)

    def distrust(self) -> None:
        """Remove the indices, so that the store is listed again."""
        for stage in self.stages:
            self.store.unindex(stage)
            self.stages[stage] = StageKeys(self.store, stage)

    def publish(self) -> None:
        """Write what is known as the store's indices; one that takes no files is read without them."""
        with suppress(StoreUnusable, StoreFull):
            for keys in self.stages.values():
                keys.publish()
