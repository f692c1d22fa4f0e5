"""The sections of a plan as strict, frozen pydantic models; every default is that of the embedded default audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_serializer

from audits.errors import BadInput
from orchestrator.plan_errors import shown

if TYPE_CHECKING:
    from audits.models import Architecture
    from audits.unlearning import Unlearner


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


Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


class Section(BaseModel):
    """A part of the plan: unknown keys and values of another type are refused; nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Search(Section):
    """Apollo's search: weights α and β, radius step ε in the ``norm``, steps T, step size, shadows used."""

    alpha: Annotated[float, Field(ge=0)] = 1.0
    beta: Annotated[float, Field(ge=0)] = 4.0
    epsilon: Annotated[float, Field(gt=0)] = 0.1
    steps: Positive = 5
    learning_rate: Annotated[float, Field(gt=0)] = 0.1
    norm: Literal["l2", "linf"] = "l2"
    shadows: Annotated[int, Field(ge=4)] | None = None


class Audit(Section):
    """Which attacks run, how they decide, and what is promised: thresholds are fixed on shadows at each ``fpr``.

    ``population``: other points that attacks such as RMIA compare a candidate with, at most; ``queries``: labels that
    an adaptive label-only attack may ask per candidate (null: as many as apollo asks); ``fdr``: the share of false
    discoveries allowed in the list of exposed points; ``radii``: estimate at which radii Apollo's theorems expect
    labels to flip (reads the targets' weights; no attack does); ``disclosure``: watch the targets train again and say
    how unique the gradients of the forget requests were, before anything was unlearned (no attack reads it either).
    """

    kind: Literal["apollo"] = "apollo"
    attacks: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "apollo",
        "apollo_offline",
        "apollo_paper",
        "random_directions",
        "single_query",
        "label_gap",
        "u_lira",
        "loss_threshold",
    )
    search: Search = Search()
    population: Positive = 200
    queries: Positive | None = None
    fdr: Share = 0.1
    radii: bool = False
    disclosure: bool = False
    fpr: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.05,)
    level: Share = 0.95
    bootstrap: Annotated[int, Field(ge=20)] = 2000
    permutations: Annotated[int, Field(ge=20)] = 2000

    @property
    def query_budget(self) -> int:
        """Labels per candidate of an adaptive label-only attack: ``queries``, else those of apollo, 1 + 4·T."""
        return self.queries or 1 + 4 * self.search.steps


class Data(Section):
    """A data set of the catalogue and the folder in which it is looked for (null: the usual places)."""

    name: Annotated[str, Field(min_length=1)] = "fashion14"
    root: str | None = None


class Model(Section):
    """An architecture of the registry and its settings (those left out have the architecture's own defaults)."""

    name: Annotated[str, Field(min_length=1)] = "mlp"
    settings: dict[str, Any] = {}

    def architecture(self) -> Architecture:
        """Return the settings as the registry's frozen dataclass."""
        from audits.models import make_model

        return make_model(self.name, self.settings)


class UnlearningMethod(BaseModel):
    """One entry of ``unlearning``: a method of the registry, its settings, and ``as``, a name of its own."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    method: Annotated[str, Field(min_length=1)]
    given_label: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] | None = Field(default=None, alias="as")

    @property
    def label(self) -> str:
        """The name in tables: ``as`` if given, else the method."""
        return self.given_label or self.method

    @property
    def settings(self) -> dict[str, Any]:
        """The method's settings."""
        return dict(self.model_extra or {})

    def with_settings(self, settings: Mapping[str, Any]) -> UnlearningMethod:
        """Return the entry with other settings."""
        given = {"as": self.given_label} if self.given_label else {}
        return type(self).model_validate({"method": self.method, **given, **settings})

    def unlearner(self) -> Unlearner:
        """Return the settings as the registry's frozen dataclass."""
        from audits.unlearning import make_unlearner

        return make_unlearner(self.method, self.settings)

    @model_serializer
    def flat(self) -> dict[str, Any]:
        """Return the entry as a plan writes it."""
        return {"method": self.method, **({"as": self.given_label} if self.given_label else {}), **self.settings}


class Compute(Section):
    """Where and how wide the plan runs; of these only device, threads and chunk can change the last bits of a score."""

    workers: Annotated[int | Literal["auto"], PlainValidator(checked_workers)] = "auto"
    device: Annotated[str, PlainValidator(checked_device)] = "auto"
    gpus_per_worker: Annotated[float, Field(ge=0)] = 0.0
    threads: Positive = 1
    chunk: Positive = 128
    address: str | None = None
    store: str | None = None


class Tracking(Section):
    """MLflow: tracking URI (null: ``MLFLOW_TRACKING_URI``, else a database in the output folder) and experiment."""

    uri: str | None = None
    experiment: Annotated[str, Field(min_length=1)] = "orch"
