"""The sections of a plan as strict, frozen pydantic models; every default is that of the embedded default audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, model_validator

from audits.addresses import database_file
from audits.errors import BadInput
from audits.models import make_model
from orchestrator.engine.plan.addresses import Address, ray_token, tracking_login
from orchestrator.engine.plan.errors import shown
from orchestrator.engine.store.open import require_place

if TYPE_CHECKING:
    from audits.models import Architecture


def checked_workers(value: Any) -> int | Literal["auto"]:
    """Return ``value`` if it is a number of worker processes (0: the calling process) or ``auto``."""
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value  # type: ignore[no-any-return]  # narrowed by the line above
    raise BadInput(f'compute.workers is {shown(value)}; allowed: "auto", or a whole number from 0 on')


def checked_device(value: Any) -> str:
    """Return ``value`` if it names a device: auto, cpu, cuda or cuda:N."""
    if isinstance(value, str) and (value in ("auto", "cpu", "cuda") or value.removeprefix("cuda:").isdecimal()):
        return value
    raise BadInput(f"compute.device is {shown(value)}; allowed: auto, cpu, cuda, or cuda:N for one GPU")


def checked_gpus(value: Any) -> float | Literal["auto"]:
    """Return ``value`` if it is what a worker can hold of GPUs: auto, a share up to 1, or a whole number."""
    if value == "auto":
        return "auto"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and (0 <= value <= 1 or (value > 0 and value == int(value))):
        return float(value)
    raise BadInput(f'compute.gpus_per_worker is {shown(value)}; allowed: "auto", 0 to 1, or a whole number')


def checked_address(value: Any) -> str | None:
    """Return ``value`` if it can be that of a Ray cluster: null (none), auto, or HOST:PORT."""
    if value is None or value == "auto":
        return value  # type: ignore[no-any-return]  # narrowed by the line above
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if host and "/" not in host and port.isdecimal() and 1024 <= int(port) <= 65535:
        return str(value)
    raise BadInput(
        f"compute.address is {shown(value)}; allowed: null (this machine), auto (on a node of the cluster), or the "
        "HOST:PORT of its control store, port 1024 to 65535; from elsewhere use orch submit"
    )


def checked_store(value: Any) -> str | None:
    """Return ``value`` if it can be the place of a store: null (the usual one), a path or a URI."""
    if not isinstance(value, str | None):
        raise BadInput(f"compute.store is {shown(value)}; allowed: a path, or a URI such as s3://bucket/folder")
    if value is not None:
        require_place(value)
    return value


Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


class Section(BaseModel):
    """A part of the plan: unknown keys and values of another type are refused; nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Data(Section):
    """A data set of the catalogue and the folder in which it is looked for (null: the usual places).

    ``groups``: a CSV or Parquet file (columns ``id`` and ``group``) that says which points belong together; each group
    then stays on one side of every border of the design (``audits.data.groups``).
    """

    name: Annotated[str, Field(min_length=1), Address()] = "fashion14"
    """The data set."""
    root: str | None = None
    """The folder in which it is looked for, null for the usual places."""
    groups: Annotated[str, Field(min_length=1)] | None = None


class Model(Section):
    """An architecture of the registry and its settings (those left out have the architecture's own defaults)."""

    name: Annotated[str, Field(min_length=1)] = "mlp"
    """The architecture."""
    settings: dict[str, Any] = {}
    """Its settings; those left out have the architecture's own defaults."""

    def architecture(self) -> Architecture:
        """Return the settings as the registry's frozen dataclass."""
        return make_model(self.name, self.settings)


class Compute(Section):
    """Where and how wide the plan runs; only device, gpu, tf32, threads, chunk and what workers of one model share can
    change the last bits of a score.

    ``workers``: a number, 0 for the calling process, or auto: what is sooner done on this machine, or as many as come
    on a cluster. ``gpus_per_worker`` auto: one where there are GPUs. ``gpu``: the model of the GPU, found out and
    written into the plan by a run. ``engine``: who hosts the workers, ``train`` (one group) or ``actors`` (each for
    itself); auto: a group on this machine, actors on a cluster. ``head``: workers may be placed on a cluster's head
    that has no GPU. ``address``: a running Ray cluster, e.g. auto. ``checkpoint_minutes``: how often a training that is
    not done is kept in the store, for another worker to go on with; null or 0: never. ``workers_per_model``: so many
    workers train a model together; ``sync_batch_norm``: with BatchNorm over the whole batch, as one worker has it.
    """

    workers: Annotated[int | Literal["auto"], PlainValidator(checked_workers)] = "auto"
    device: Annotated[str, PlainValidator(checked_device)] = "auto"
    """Where models compute; auto: a GPU where there is one."""
    gpu: Annotated[str, Field(min_length=1)] | None = None
    tf32: bool = False
    """Let GPUs round products to TF32."""
    record_steps: bool = True
    """Record the steps of a training on a GPU once and play them again; changes no number."""
    gpus_per_worker: Annotated[float | Literal["auto"], PlainValidator(checked_gpus)] = "auto"
    """GPUs that a worker holds, or a share of one; auto: one where there are GPUs."""
    cpus_per_worker: Annotated[float, Field(gt=0)] = 1.0
    """CPUs that a worker holds."""
    engine: Literal["auto", "train", "actors"] = "auto"
    head: bool = False
    threads: Positive = 1
    """Threads of a worker."""
    chunk: Positive = 128
    """Points of a piece of work; pieces of another size round otherwise."""
    address: Annotated[str | None, PlainValidator(checked_address), Address(ray_token, bare=True)] = None
    store: Annotated[str | None, PlainValidator(checked_store), Address()] = None
    """Where finished work is kept; null: ORCH_STORE, else .orch/store."""
    checkpoint_minutes: Annotated[float, Field(ge=0)] | None = 10.0
    workers_per_model: Positive = 1
    sync_batch_norm: bool = True

    @model_validator(mode="after")
    def _workers_can_work(self) -> Self:
        if problem := team_problem(self) or cluster_problem(self):
            raise BadInput(problem)
        return self


def team_problem(compute: Compute) -> str:
    """Return why so many workers cannot train a model together, "" where they can."""
    size, workers, gpus = compute.workers_per_model, compute.workers, compute.gpus_per_worker
    if size == 1:
        alone = "compute.sync_batch_norm is false, which only compute.workers_per_model above 1 reads; leave it out"
        return "" if compute.sync_batch_norm else alone
    asked = f"compute.workers_per_model is {size}"
    if compute.engine == "actors":
        return f"{asked}, but compute.engine is actors, which train for themselves; give train, or leave it out"
    if workers == 0:
        return f"{asked}, but compute.workers is 0, the calling process alone; give {size}, a multiple of it, or auto"
    if isinstance(workers, int) and workers % size:
        near = [str(each) for each in (workers // size * size, -(-workers // size) * size) if each]
        return f"{asked}, which does not divide compute.workers ({workers}); give {' or '.join(near)} workers"
    if isinstance(gpus, float) and 0 < gpus < 1:
        return f"{asked}, whose workers need a GPU each, but compute.gpus_per_worker is {gpus:g}; give 1, or auto"
    return ""


def cluster_problem(compute: Compute) -> str:
    """Return why workers on a cluster cannot be asked for like this, "" where they can, or there is no cluster."""
    if compute.address is None or compute.workers == 0:
        return ""
    team = compute.workers_per_model
    if compute.workers == "auto" and team > 1:
        return f"compute.workers_per_model is {team} and compute.workers auto; on a cluster give the number of workers"
    if compute.workers == "auto" and compute.engine == "train":
        return (
            "compute.engine is train and compute.workers auto; a group on a cluster needs a number of workers (or "
            "leave compute.engine out: workers then come and go)"
        )
    if compute.device.startswith("cuda:"):
        return f"compute.device is {compute.device}; on a cluster give cuda: each worker has GPUs of its own"
    if compute.device == "cuda" and compute.gpus_per_worker == 0:
        return "compute.device is cuda, but compute.gpus_per_worker is 0; leave it out, or give a number"
    return ""


class Tracking(Section):
    """MLflow: tracking URI (null: ``MLFLOW_TRACKING_URI``, else a database in the output folder) and experiment.

    ``log_models``: which of the models that the audit judges are logged in MLflow, to be served from there: none, those
    of the first target, or those of all targets.
    """

    uri: Annotated[str | None, Address(tracking_login, writes=database_file)] = None
    """Tracking server; null: MLFLOW_TRACKING_URI, else a database in the output folder."""
    experiment: Annotated[str, Field(min_length=1)] = "orch"
    """Name of the experiment."""
    log_models: Literal["none", "first", "targets"] = "none"


def checked_classes(value: Any) -> Literal["even", "odd"] | tuple[int | str, ...] | None:
    """Return ``value`` if it names classes: null (all), even, odd, or a list of indices or names."""
    if value is None or value in ("even", "odd"):
        return value  # type: ignore[no-any-return]  # narrowed by the line above
    if isinstance(value, list | tuple) and value:
        odd = [one for one in value if isinstance(one, bool) or not isinstance(one, int | str) or one in ("", -1)]
        if not odd:
            return tuple(value)
    raise BadInput(f"classes are {shown(value)}; allowed: null (all), even, odd, or a list of indices or names")


def written_classes(value: Any) -> Any:
    """Return classes as a plan writes them."""
    return list(value) if isinstance(value, tuple) else value


Classes = Annotated[Any, PlainValidator(checked_classes), PlainSerializer(written_classes)]
