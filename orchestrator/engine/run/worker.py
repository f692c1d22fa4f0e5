"""Workers' contexts: one ``WorkerContext`` a plan and process, with its design, its data and recently read models."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from actors.jobs import Unfit
from audits.credentials import remember, remembered
from audits.errors import BadInput
from audits.gpu import settle
from audits.memory import out_of_memory
from audits.seeds import derive_seed
from audits.training.keeper import NEVER
from audits.training.team import ALONE, KeptByFirst, Team
from orchestrator.engine.data import data_of
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.kind import Kind, load
from orchestrator.engine.own_code import OwnCode
from orchestrator.engine.run.recent import Recent
from orchestrator.engine.run.room import OutOfMemory, no_room, with_room
from orchestrator.engine.run.within import followed
from orchestrator.engine.store.checkpoints import JobKeeper
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.once import do_once
from orchestrator.engine.store.owner import Owner
from orchestrator.engine.store.payloads import pack_json, unpack_weights
from orchestrator.engine.store.probe import check_probe
from orchestrator.engine.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from audits.data.tensors import TensorSet
    from audits.training.keeper import Keeper
    from orchestrator.engine.plan.base import BasePlan

WEIGHTS = "weights.safetensors"
ASKED = "asked.json"
"""How often a job asked a given model of which only answers are known; in artefacts of jobs that did."""
OPEN_GIVEN = "orchestrator.engine.run.opened:open_given"
"""What opens a given model: by name, so that the code of trainings does not reach it."""

D = TypeVar("D")


@dataclass(frozen=True)
class OpenContexts:
    """Opens the contexts of one or more plans of one kind in a worker process; small and picklable.

    ``plans`` maps the hash of each plan to its plain values; a job is done in the context of its own plan.
    ``fingerprint`` is that of the data on the driver, which every worker must find too; so is the file ``probe`` in the
    store (none: nobody looks). ``owner``: the driver for whom jobs are claimed, so that several drivers on one store do
    each once (none: nobody claims). ``code``: that of users' own which the plans reach; every worker must have it
    too. ``credentials`` are those of the masked addresses in the plans.
    """

    kind: Kind
    plans: Mapping[str, dict[str, Any]]
    store: str
    device: str
    fingerprint: str
    probe: str = ""
    owner: Owner | None = None
    code: OwnCode = field(default_factory=OwnCode)
    credentials: Mapping[str, str] = field(default_factory=remembered, repr=False, compare=False)

    def __call__(self, mates: Team = ALONE) -> Callable[[Any], None]:
        """Return the function that does a job, or helps the first of ``mates`` to do it."""
        opened: dict[str, WorkerContext[Any]] = {}
        lately = Recent()

        def perform(job: Job) -> None:
            if job.plan not in opened:
                opened[job.plan] = self.open(job.plan, lately)
                opened[job.plan].mates = mates
            if mates.leads:
                self.do(opened[job.plan], job)
            else:
                opened[job.plan].made(job)

        return perform

    def do(self, context: WorkerContext[Any], job: Job) -> None:
        """Do ``job``; raises Elsewhere while another driver on the same store does it."""
        with followed(job.key):
            if self.owner is None:
                context.perform(job)
            else:
                do_once(context.store, job.stage, job.key, self.owner, lambda: context.perform(job))

    def open(self, plan_hash: str, lately: Recent | None = None) -> WorkerContext[Any]:
        """Return the context of one plan; ``lately``: what the process keeps in memory, for all its contexts."""
        import torch

        remember(self.credentials)
        store = Store(self.store)
        if self.probe:
            check_probe(store, self.probe)
        self.check_code(self.plans[plan_hash])
        plan = self.kind.check(self.plans[plan_hash], ())
        torch.set_num_threads(plan.compute.threads)
        settle_gpu(self.device, plan)
        data = data_of(plan.data.name, plan.data.root, plan.data.groups)
        if data.fingerprint != self.fingerprint:
            raise BadInput(
                f"data.name: {plan.data.name} differs between machines (fingerprint {data.fingerprint[:12]} here, "
                f"{self.fingerprint[:12]} where the run was started); copy the same files to all of them"
            )
        return WorkerContext(self.kind, self.kind.lay_out(plan, data, self.device, store), store, lately)

    def check_code(self, values: Mapping[str, Any]) -> None:
        """Refuse to work where users' code is not that of the driver; a cluster's other machines may have it."""
        try:
            self.code.require()
        except BadInput as error:
            if values["compute"]["address"] is None:
                raise
            raise Unfit(str(error)) from None


class WorkerContext(Generic[D]):
    """Does jobs of one plan, one at a time; ``design`` is the plan laid out on its data, of the class of its kind.

    ``lately``: the memory of its process, which the contexts of other plans use too.
    """

    def __init__(self, kind: Kind, design: D, store: Store, lately: Recent | None = None) -> None:
        self.kind = kind
        self.design = design
        self.store = store
        self.lately = lately or Recent()
        self.asked = 0
        self.keeper: Keeper = NEVER
        """Keeps the training of the job in hand."""
        self.mates: Team = ALONE
        """This process among those that train models together."""
        self.team: Team = ALONE
        """Who does the job in hand: all of them if it makes a model."""

    @property
    def laid_out(self) -> Any:
        """The design, read for what every kind's design has (``Design``)."""
        return self.design

    @property
    def plan(self) -> Any:
        """The plan in hand."""
        return self.laid_out.plan

    def perform(self, job: Job) -> None:
        """Do ``job`` and put its artefact; equal jobs give equal artefacts on any worker.

        Its seconds are those of all workers that did it together, and of those from whose checkpoint it went on.
        Refuses a job whose document is not the one that this context's plan and code give: whatever is stored under a
        key is what the document says.
        """
        begin = time.perf_counter()
        team = self.team_of(job)
        if team.size > 1:
            team.from_first(job)
        minutes = self.plan.compute.checkpoint_minutes
        kept = JobKeeper(self.store, job.stage, job.key, minutes) if minutes else None
        files = self.made(job, kept)
        seconds = (time.perf_counter() - begin + (kept.spent if kept else 0.0)) * team.size
        self.store.put(job.stage, job.key, job.document, files, seconds=seconds)
        if kept:
            kept.remove()

    def made(self, job: Job, kept: JobKeeper | None = None) -> dict[str, bytes]:
        """Return the files of the artefact of ``job``; of those that make it together all do, and the first keeps it.

        ``kept``: keeps its training, if this process does.
        """
        if self.laid_out.same(job).key != job.key:
            raise RuntimeError(
                f"job {job.stage}/{job.key} is not this worker's: its plan, code or platform differs from the driver's"
            )
        self.asked, self.team, self.keeper = 0, self.team_of(job), kept or NEVER
        if self.team.size > 1 and self.plan.compute.checkpoint_minutes:
            self.keeper = KeptByFirst(self.keeper, self.team)
        files = dict(self.files_of(job))
        if self.asked:
            files[ASKED] = pack_json({"asked": self.asked})
        return files

    def team_of(self, job: Job) -> Team:
        """Return who does ``job``; raises BadInput where the plan wants others than there are."""
        compute = self.plan.compute
        if compute.workers_per_model == 1 or self.kind.stage(job.stage).makes != "model":
            return ALONE
        if compute.workers_per_model != self.mates.size:
            raise BadInput(
                f"compute.workers_per_model is {compute.workers_per_model}, but a model is to be made by "
                f"{self.mates.size} worker(s): give all settings of a sweep the same number, or leave it out"
            )
        return replace(self.mates, sync_batch_norm=compute.sync_batch_norm)

    def files_of(self, job: Job) -> Mapping[str, bytes]:
        """Return the files of the artefact of ``job``, done alone on its GPU where there is no room beside others.

        Raises OutOfMemory where there is none for it alone. What several workers do together is not tried again: the
        others are at another place by then.
        """
        stage = self.kind.stage(job.stage)
        try:
            if self.team.size > 1:
                return stage.body(self, job)
            return with_room(self.laid_out.device, lambda: stage.body(self, job), self.lately.forget)
        except Exception as error:
            if not out_of_memory(error):
                raise
            raise OutOfMemory(no_room(stage, job, self.laid_out.device, self.plan, error)) from error

    def count_asked(self, queries: int) -> None:
        """Note how many inputs a given model was asked about in the job in hand."""
        self.asked += queries

    def tensors(self, ids: Any) -> TensorSet:
        """Return the points ``ids`` on the device of the plan."""
        found: TensorSet = self.laid_out.data.tensors(ids, self.laid_out.device)
        return found

    def seed(self, purpose: str, *index: int | str) -> int:
        """Return the seed for one purpose of the plan."""
        return derive_seed(self.plan.seed, purpose, *index)

    def recent(self, name: Hashable, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the array that ``make`` makes; one made lately under this name comes from memory. It is read-only."""
        return self.lately.array((id(self), name), make)

    def stored(self, reference: Reference, build: Callable[[], nn.Module]) -> nn.Module:
        """Return a stored model, in eval mode, frozen; ``build`` makes one of its shape; recent ones stay in memory.

        A given model of which only answers are known is a module without parameters, and ``build`` is not called.
        What it is the plan says: raises CorruptArtefact for an artefact that is anything else.
        """
        own = (id(self), reference.key)  # what asks somebody counts for this plan
        for name in (reference.key, own):
            if (known := self.lately.model(name)) is not None:
                return known
        artefact = self.store.get(reference.stage, reference.key)
        given = self.kind.stage(reference.stage).makes == "given"
        if given and (answering := load(OPEN_GIVEN)(self, artefact)) is not None:
            return self.lately.keep(own, self.frozen(answering))
        if WEIGHTS not in artefact.files:
            name = f"{reference.stage}/{reference.key}"
            raise CorruptArtefact(
                f"artefact {name} holds no weights, which every model trained by orch has; remove its folder from the "
                "store to have it made anew"
            )
        model = build()
        model.load_state_dict(unpack_weights(artefact.read(WEIGHTS)))
        return self.lately.keep(reference.key, self.frozen(model))

    def frozen(self, model: nn.Module) -> nn.Module:
        """Return ``model`` on the device of the plan, in eval mode, its parameters without gradients."""
        return model.to(self.laid_out.device).eval().requires_grad_(False)


def settle_gpu(device: str, plan: BasePlan) -> None:
    """Set what decides the last bits on a GPU: deterministic algorithms, and TF32 as the plan says.

    Raises Unfit where the GPU is not of the model for which the plan's keys are made; does nothing for a CPU.
    """
    if device == "cpu":
        return
    import torch

    if not torch.cuda.is_available():
        raise Unfit("torch finds no GPU there")
    if (found := torch.cuda.get_device_name(device)) != plan.compute.gpu:
        raise Unfit(f"its GPU is {found!r}, and this run's is {plan.compute.gpu!r}")
    settle(plan.compute.tf32, plan.compute.record_steps)
