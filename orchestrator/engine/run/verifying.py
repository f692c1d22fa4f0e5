"""``orch verify``: some artefacts of a plan are made once more, in a store of their own, and compared."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from audits.errors import BadInput, how_many
from audits.targets.forms import is_here
from orchestrator.engine.data import data_of
from orchestrator.engine.durations import seconds
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.attempts import FAILED
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.crew import Crew
from orchestrator.engine.run.stored_work import StoredWork
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.run.workers import hire
from orchestrator.engine.store.comparing import ABSOLUTE, RELATIVE, unlike
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.machine_kind import machine_kind
from orchestrator.engine.store.store import Artefact, Store, default_store_uri
from orchestrator.engine.target_check import check_target_of

SCHEMA = "orch.verify/1"
BY_ROUNDING = (
    "all within what rounding does, and another kind of machine made it, as the store says; if you know that it did, "
    "add --rounding"
)
"""The store may not choose how it is compared: within the tolerance whoever planted scores puts close ones in order."""


@dataclass(frozen=True)
class Verified:
    """One artefact that was made once more.

    ``exact``: it was held to the same values; otherwise, made on another kind of machine, to the tolerance of
    ``comparing``. ``differences``: in what it differs, in words; none: it does not.
    """

    stage: str
    key: str
    exact: bool
    differences: tuple[str, ...]


@dataclass(frozen=True)
class Verification:
    """What came of a sample: ``of``, stage → how many artefacts of the plan it was drawn from; ``seed`` repeats it."""

    seed: int
    of: Mapping[str, int]
    verified: tuple[Verified, ...]

    @property
    def unlike(self) -> tuple[Verified, ...]:
        """The artefacts that are not what their plan gives."""
        return tuple(each for each in self.verified if each.differences)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        return {
            "schema": SCHEMA,
            "seed": self.seed,
            "tolerance": {"relative": RELATIVE, "absolute": ABSOLUTE},
            "artefacts": dict(self.of),
            "drawn": dict(Counter(each.stage for each in self.verified)),
            "differ": len(self.unlike),
            "verified": [asdict(each) for each in self.verified],
        }

    def lines(self) -> Iterator[str]:
        """Yield the outcome in words: a line for each artefact that differs, and one for all."""
        for each in self.unlike:
            yield f"{each.stage}/{each.key} differs: {'; '.join(each.differences)}"
        near = [each for each in self.verified if not each.exact]
        how = "equal"
        if near:
            how += f" ({how_many(len(near), 'artefact')} of another kind of machine within {RELATIVE:g})"
        equal = len(self.verified) - len(self.unlike)
        yield f"verified: {equal} of {how_many(len(self.verified), 'artefact')} {how}, {len(self.unlike)} differ"


class Verifying:
    """Artefacts of ``plan`` in its store, and those that this machine makes of the same jobs.

    ``settings``: name → dotted fields that change, of a plan with variants or of a sweep. ``rounding``: what another
    kind of machine made, as the store says, may differ by the tolerance. Raises BadInput where the store has nothing
    that this machine would make under the same keys.
    """

    def __init__(
        self,
        kind: Kind,
        plan: BasePlan,
        settings: Mapping[str, Mapping[str, Any]],
        fresh: Store,
        terminal: Terminal,
        *,
        rounding: bool = False,
    ) -> None:
        plan = with_digests(plan if plan.compute.address is None else plan.changed({"compute.address": None}))
        self.kind, self.fresh, self.terminal, self.rounding = kind, fresh, terminal, rounding
        self.store = Store(plan.compute.store or default_store_uri())
        self.plan, device, most = hire(plan, fresh, terminal, lambda *_: False)
        self.data = data = data_of(plan.data.name, plan.data.root, plan.data.groups)
        plans = [with_digests(self.plan.changed(changes)) if changes else self.plan for changes in settings.values()]
        self.designs = [kind.lay_out(each, data, device, self.store) for each in plans]
        self.crew = Crew(kind, self.designs[0], most, StoredWork(kind, fresh, terminal), terminal)
        self.first = {job.key: job for design in self.designs for job in design.first_jobs()}
        present = kind.present(self.store)
        if any(key not in present[job.stage] for key, job in self.first.items()):
            raise self.nothing()
        self.jobs = {**self.first, **{job.key: job for design in self.designs for job in design.jobs()}}
        self.there = [job for job in self.jobs.values() if job.key in present[job.stage]]
        if not self.there:
            raise self.nothing()

    def nothing(self) -> BadInput:
        """Return the refusal where no artefact can be compared."""
        return BadInput(
            f"the store {self.store.storage.place} has nothing of this plan that could be made again here: keys name "
            "the plan, the data, the version of the code and of torch, device and threads; verify where the run was "
            "made, with the store that it used (--store)"
        )

    def drawn(self, count: int, seed: int) -> list[Job]:
        """Return ``count`` jobs, or all there are, that have an artefact: drawn by ``seed``, each stage in its turn.

        What a run is given, and scores of which an attack failed, are left out: the one is read from its files, all of
        it (``given``), the others are made anew by every run.
        """
        piles: dict[str, list[Job]] = {}
        for job in sorted(self.there, key=lambda job: job.key):
            if self.kind.stage(job.stage).makes != "given" and not self.is_failed(job):
                piles.setdefault(job.stage, []).append(job)
        draw = random.Random(seed)
        stages = sorted(piles, key=lambda name: self.kind.stage(name).makes != "scores")
        for stage in stages:
            draw.shuffle(piles[stage])
        found: list[Job] = []
        while len(found) < count and any(piles.values()):
            found += [piles[stage].pop() for stage in stages if piles[stage]]
        return found[:count]

    def is_failed(self, job: Job) -> bool:
        """Say whether an attack failed in stored scores."""
        if self.kind.stage(job.stage).makes != "scores":
            return False
        with suppress(CorruptArtefact):
            return FAILED in self.store.get(job.stage, job.key).files
        return False

    def verify(self, count: int, seed: int) -> Verification:
        """Make ``count`` artefacts once more and compare them with what the store has."""
        jobs = self.drawn(count, seed)
        of = Counter(job.stage for job in self.there)
        self.tell(jobs, of, seed)
        for design in self.designs:
            check_target_of(design)
        plans = [design.plan for design in self.designs]
        used = {job.plan for job in jobs}
        self.crew.settle([(plan, [job for job in jobs if job.plan == plan.plan_hash]) for plan in plans])
        found = self.given()
        with self.terminal.quiet(), self.crew.connected():
            for batch in apart(jobs, lambda job: self.inputs([job])):
                self.bring_inputs(batch)
                chosen = [plan for plan in plans if plan.plan_hash in used]
                self.crew.carry_out(batch, chosen, "verifying", self.crew.workers)
                found |= {job.key: self.compared(job) for job in batch}
                for job in batch:
                    self.crew.stored.known.drop(job.stage, job.key)
        return Verification(seed, of, tuple(found.values()))

    def given(self) -> dict[str, Verified]:
        """Compare all that the run was given with the files of the plan, as far as these are here; key → outcome.

        A served model is not asked again.
        """
        there, found = {job.key for job in self.there}, dict[str, Verified]()
        for design in self.designs:
            jobs = [job for job in self.kind.brought_in(design.jobs()) if job.key in there and job.key not in found]
            if not jobs:
                continue
            if missing := not_here(design.plan):
                self.terminal.line(f"given models and points, not compared: {missing}")
                continue
            self.bring_inputs(jobs)
            laid_out = self.kind.lay_out(design.plan, self.data, design.device, self.fresh)
            context = WorkerContext(self.kind, laid_out, self.fresh)
            for job in jobs:
                context.perform(job)
                found[job.key] = self.compared(job)
            for job in jobs:
                self.fresh.drop(job.stage, job.key)
        return found

    def tell(self, jobs: Sequence[Job], of: Mapping[str, int], seed: int) -> None:
        """Say what is drawn, and how long it took when it was made."""
        drawn = Counter(job.stage for job in jobs)
        some = ", ".join(f"{stage} {count} of {of[stage]}" for stage, count in drawn.items())
        took = 0.0
        for job in jobs:
            with suppress(CorruptArtefact):
                took += self.store.get(job.stage, job.key).seconds
        self.terminal.line(
            f"drawn: {len(jobs)} of {how_many(sum(of.values()), 'artefact')} ({some}) by --seed {seed}; about "
            f"{seconds(took)} of work, by what the store says"
        )

    def bring_inputs(self, batch: Sequence[Job]) -> None:
        """Copy what the jobs read into the fresh store, and see to it that what they make is not there."""
        for key in self.inputs(batch):
            stage = self.jobs[key].stage
            if not self.fresh.has(stage, key):
                artefact = self.store.get(stage, key)
                self.fresh.put(stage, key, artefact.document, contents(artefact), seconds=artefact.seconds)
        for job in batch:
            self.fresh.drop(job.stage, job.key)

    def inputs(self, batch: Sequence[Job]) -> set[str]:
        """Return the keys of what jobs need, directly or by what they need: bodies read both."""
        found = set(self.first)
        left = [need for job in batch for need in job.needs]
        while left:
            if (key := left.pop()) not in found:
                found.add(key)
                left += self.jobs[key].needs
        return found - {job.key for job in batch}

    def compared(self, job: Job) -> Verified:
        """Return how the stored artefact of ``job`` stands to the one that was made."""
        made = self.fresh.get(job.stage, job.key)
        try:
            stored = self.store.get(job.stage, job.key)
            elsewhere = stored.machine != machine_kind()
            exact = not (elsewhere and self.rounding)
            found = unlike(contents(stored), contents(made), exact=exact)
            if found and elsewhere and exact and not unlike(contents(stored), contents(made), exact=False):
                found.append(BY_ROUNDING)
            if stored.document != made.document:
                found.append("its document is that of another job")
        except CorruptArtefact as error:
            return Verified(job.stage, job.key, True, (str(error),))
        return Verified(job.stage, job.key, exact, tuple(found))


def not_here(plan: Any) -> str:
    """Return which file of a plan's target is not on this machine, or that it is served; "" where all are here."""
    served = getattr(plan.target, "served", None) is not None and plan.target.form() == "address"
    if served:
        return f"{plan.target.weights} is not asked again"
    return next((f"{name} is not here" for name in plan.target.files if not is_here(name)), "")


def contents(artefact: Artefact) -> dict[str, bytes]:
    """Return the files of an artefact by name; raises CorruptArtefact for a damaged one."""
    return {name: artefact.read(name) for name in artefact.files}


def apart(jobs: Iterable[Job], inputs: Callable[[Job], Collection[str]]) -> list[list[Job]]:
    """Return ``jobs`` in lists of which no job reads another: each is to read what the store has, not what was made.

    ``inputs``: the keys that a job reads.
    """
    batches: list[tuple[list[Job], set[str]]] = []
    for job in jobs:
        read = inputs(job)
        for batch, of_batch in batches:
            if job.key not in of_batch and not any(other.key in read for other in batch):
                batch.append(job)
                of_batch.update(read)
                break
        else:
            batches.append(([job], set(read)))
    return [batch for batch, _ in batches]


def verify(
    kind: Kind,
    plan: BasePlan,
    settings: Mapping[str, Mapping[str, Any]],
    terminal: Terminal,
    *,
    sample: int,
    seed: int,
    rounding: bool = False,
) -> Verification:
    """Make ``sample`` artefacts of ``plan`` once more, on this machine, and compare them with those of its store.

    Nothing is written into that store; a temporary one takes copies of all that these artefacts were made of. Raises
    as ``Verifying``, and whatever the jobs raise.
    """
    with tempfile.TemporaryDirectory(prefix="orch-verify-") as folder:
        fresh = Store(f"{folder}/store")
        return Verifying(kind, plan, settings, fresh, terminal, rounding=rounding).verify(sample, seed)
