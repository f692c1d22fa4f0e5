"""Changes of a run to its store beside its jobs: it notes what it refers to, and drops what must be made again."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from audits.errors import how_many
from orchestrator.engine.jobs.job import Job, missing
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.attempts import FAILED
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.store.faults import CorruptArtefact, StoreFull, StoreUnusable, Unsigned
from orchestrator.engine.store.known import Known
from orchestrator.engine.store.store import Store


class StoredWork:
    """The store of one run, and what the run knows of it."""

    def __init__(self, kind: Kind, store: Store, terminal: Terminal) -> None:
        self.kind = kind
        self.store = store
        self.terminal = terminal
        self.known = Known(store, [stage.name for stage in kind.stages])

    def present(self) -> Mapping[str, Container[str]]:
        """Return what the store has, stage → keys: by its index, else by one listing a stage."""
        return self.known.stages

    def lacks(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs whose artefacts the store does not have, each key once."""
        return list(missing(jobs, self.present()))

    def record(self, name: str, plan: BasePlan, held: Mapping[str, Sequence[str]], gpu: str) -> Exception | None:
        """Write down which artefacts the run refers to; return why the store takes no record, if it does not."""
        try:
            self.store.record_run(name, plan.deciding(), held, gpu)
        except (StoreUnusable, StoreFull) as error:
            return error
        return None

    def drop_failed(self, held: Mapping[str, Sequence[str]]) -> None:
        """Drop stored scores of which an attack failed, so that it is tried again: it may have lacked memory only."""
        present = self.present()
        scores = [stage.name for stage in self.kind.stages if stage.makes == "scores"]
        wanted = [
            (stage, key) for stage in scores for key in dict.fromkeys(held.get(stage, ())) if key in present[stage]
        ]
        failed = [(stage, key) for stage, key in wanted if FAILED in self.store.get(stage, key).files]
        for stage, key in failed:
            self.known.drop(stage, key)
        if failed:
            self.terminal.line(f"score: {how_many(len(failed), 'job')} in which an attack failed, to be done again")

    def drop_damaged(self, held: Mapping[str, Sequence[str]]) -> None:
        """Read every artefact that the run refers to and drop those that are damaged; the indices are not believed."""
        self.known.distrust()
        present = self.present()
        wanted = [(stage, key) for stage, keys in held.items() for key in dict.fromkeys(keys) if key in present[stage]]
        dropped = 0
        with self.terminal.stage("checking the store", len(wanted)) as advance:
            for done, (stage, key) in enumerate(wanted, start=1):
                try:
                    self.store.verify(stage, key)
                except (CorruptArtefact, Unsigned) as error:
                    self.terminal.line(f"{str(error).partition('; run again with --rebuild')[0]}: dropped")
                    self.known.drop(stage, key)
                    dropped += 1
                advance(done)
        self.terminal.line(f"store: {how_many(len(wanted), 'artefact')} checked, {dropped} damaged and dropped")
