"""Where work is done: one ``Workshop`` a process, with the plan's data, partition and recently read models."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput
from orchestrator.jobs import Job, Reference
from orchestrator.schedule import AnyScheduler, data_of, open_scheduler
from orchestrator.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from audits.data.partition import Member
    from audits.data.tensors import TensorSet
    from orchestrator.plan_sections import UnlearningMethod

WEIGHTS = "weights.safetensors"
BYTES_IN_MEMORY = 2**31  # of models that were read lately; one model always stays
BYTES_OF_ARRAYS = 2**29  # of arrays that were made lately; what is larger than half of it is made again

Body = Callable[["Workshop", Job], Mapping[str, bytes]]


@dataclass(frozen=True)
class OpenWorkshops:
    """Opens the workshops of one or more plans in a worker process; small and picklable.

    ``plans`` maps the hash of each plan to its plain values; a job is done in the workshop of its own plan.
    ``fingerprint`` is that of the data on the driver, which every worker must find too.
    """

    plans: Mapping[str, dict[str, Any]]
    store: str
    device: str
    fingerprint: str

    def __call__(self) -> Callable[[Any], None]:
        """Return the function that does a job."""
        opened: dict[str, Workshop] = {}

        def perform(job: Job) -> None:
            if job.plan not in opened:
                opened[job.plan] = self.open(job.plan)
            opened[job.plan].perform(job)

        return perform

    def open(self, plan_hash: str) -> Workshop:
        """Return the workshop of one plan."""
        import torch

        from orchestrator.plan import plan_from

        plan = plan_from(self.plans[plan_hash])
        torch.set_num_threads(plan.compute.threads)
        data = data_of(plan.data.name, plan.data.root)
        if data.fingerprint != self.fingerprint:
            raise BadInput(
                f"data.name: {plan.data.name} differs between machines (fingerprint {data.fingerprint[:12]} here, "
                f"{self.fingerprint[:12]} where the run was started); copy the same files to all of them"
            )
        store = Store(self.store)
        return Workshop(open_scheduler(plan, store, data, self.device), store)


class Workshop:
    """Does jobs of one plan, one at a time."""

    def __init__(self, scheduler: AnyScheduler, store: Store) -> None:
        self.scheduler: Any = scheduler
        self.store = store
        self.models: OrderedDict[str, nn.Module] = OrderedDict()
        self.held = 0
        self.arrays: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()

    @property
    def plan(self) -> Any:
        """The plan in hand."""
        return self.scheduler.plan

    @property
    def methods(self) -> Mapping[str, UnlearningMethod]:
        """The plan's unlearning methods by label."""
        return self.scheduler.by_label  # type: ignore[no-any-return]  # schedulers of other audits have none

    def perform(self, job: Job) -> None:
        """Do ``job`` and put its artefact; equal jobs give equal artefacts on any worker.

        Refuses a job whose document is not the one that this workshop's plan and code give: whatever is stored under a
        key is what the document says.
        """
        from orchestrator.stages import bodies

        if self.scheduler.job_like(job).key != job.key:
            raise RuntimeError(
                f"job {job.stage}/{job.key} is not this worker's: its plan, code or platform differs from the driver's"
            )
        begin = time.perf_counter()
        files = bodies()[job.stage](self, job)
        self.store.put(job.stage, job.key, job.document, files, seconds=time.perf_counter() - begin)

    def tensors(self, ids: Any) -> TensorSet:
        """Return the points ``ids`` on the device of the plan."""
        found: TensorSet = self.scheduler.data.tensors(ids, self.scheduler.device)
        return found

    def seed(self, purpose: str, *index: str) -> int:
        """Return the seed of one random choice of this plan."""
        from audits.seeds import derive_seed

        return derive_seed(self.plan.seed, purpose, *index)

    def builder(self, member: Member) -> Callable[[int], nn.Module]:
        """Return what builds a fresh model of a member's architecture from a seed."""
        data = self.scheduler.data
        architecture = self.scheduler.model_of(member).architecture()
        return lambda seed: architecture.build(data.shape, len(data.classes), seed)

    def originals(self, members: Sequence[Member]) -> list[nn.Module]:
        """Return the trained models of ``members``."""
        return [self.model(self.scheduler.trained(member), member) for member in members]

    def forgetful(self, members: Sequence[Member], entry: UnlearningMethod) -> list[nn.Module]:
        """Return the models of ``members`` after unlearning by ``entry``."""
        return [self.model(self.scheduler.unlearned(member, entry), member) for member in members]

    def model(self, reference: Reference, member: Member) -> nn.Module:
        """Return the stored model of ``member``; see ``stored``."""
        return self.stored(reference, lambda: self.builder(member)(0))

    def recent(self, name: Hashable, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the array that ``make`` makes; one made lately under this name comes from memory. It is read-only."""
        if name not in self.arrays:
            found = make()
            if found.nbytes > BYTES_OF_ARRAYS // 2:
                return found
            found.flags.writeable = False
            self.arrays[name] = found
        self.arrays.move_to_end(name)
        while sum(array.nbytes for array in self.arrays.values()) > BYTES_OF_ARRAYS:
            self.arrays.popitem(last=False)
        return self.arrays[name]

    def stored(self, reference: Reference, build: Callable[[], nn.Module]) -> nn.Module:
        """Return a stored model, in eval mode, frozen; ``build`` makes one of its shape; recent ones stay in memory."""
        if reference.key in self.models:
            self.models.move_to_end(reference.key)
            return self.models[reference.key]
        from safetensors.torch import load

        weights = load(self.store.get(reference.stage, reference.key).read(WEIGHTS))
        model = build()
        model.load_state_dict(weights)
        model = model.to(self.scheduler.device).eval().requires_grad_(False)
        self.models[reference.key] = model
        self.held += size_of(model)
        while len(self.models) > 1 and self.held > BYTES_IN_MEMORY:
            self.held -= size_of(self.models.popitem(last=False)[1])
        return model


def size_of(model: nn.Module) -> int:
    """Return the bytes of a model's parameters and buffers."""
    return sum(value.numel() * value.element_size() for value in model.state_dict().values())
