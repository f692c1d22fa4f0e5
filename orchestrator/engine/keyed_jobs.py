"""Jobs with keys: a job's document is completed by platform and code, and the key is the hash of the document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Self

from audits.errors import BadInput
from audits.extras import command
from audits.models import MODELS
from audits.own.code import taken_apart
from audits.training.engines.base import ENGINES
from audits.training.recipe import Recipe
from orchestrator.engine.jobs.code_version import code_version
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.jobs.keys import artefact_key

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from audits.data.duplicates import Borders
    from orchestrator.engine.kind import Stage
    from orchestrator.engine.store.store import Store


class KeyedJobs(ABC):
    """Makes the jobs of one plan on its data and on one ``device``, "cpu" or "cuda".

    ``stages`` are those of the kind: the code of a job is what the body of its stage reaches. ``store`` is read by
    plans whose design depends on results.
    """

    def __init__(
        self, plan: Any, data: Dataset, device: str, store: Store | None = None, stages: Sequence[Stage] = ()
    ) -> None:
        self.plan = plan
        self.data = data
        self.device = device
        self.store = store
        self.stages = tuple(stages)

    @cached_property
    def bodies(self) -> Mapping[str, str]:
        """The module of the body of each stage."""
        return {stage.name: stage.body.__module__ for stage in self.stages}

    @cached_property
    def makes(self) -> Mapping[str, str]:
        """What the artefacts of each stage are."""
        return {stage.name: stage.makes for stage in self.stages}

    def first_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that must be done before there is a design: none, unless a kind says otherwise."""
        return ()

    @abstractmethod
    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan but the first ones."""

    @abstractmethod
    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""

    def priced(self) -> Self:
        """Return the design whose jobs are priced: this one."""
        return self

    def borders(self) -> Borders | None:
        """Return which points the design keeps apart, and which it asks about; None: nobody looks for copies."""
        return None

    @property
    def weight(self) -> int:
        """A rough measure of the work after training."""
        return 0

    @cached_property
    def plan_hash(self) -> str:
        """The hash of the plan."""
        return str(self.plan.plan_hash)

    def platform(self, recipes: Iterable[Recipe]) -> dict[str, Any]:
        """Return what decides the last bits of a number beside the plan: library, device, threads, model of a GPU."""
        device = self.device.partition(":")[0]
        compute = self.plan.compute
        return {
            "torch": installed("torch"),
            "device": device,
            "threads": compute.threads,
            **({"gpu": compute.gpu, "tf32": compute.tf32} if device == "cuda" else {}),
            **{package: installed(package) for package in self.packages(recipes)},
        }

    def team(self, stage: str) -> dict[str, Any]:
        """Return how many workers make a model of ``stage`` together, which decides rounding; nothing for one."""
        compute = self.plan.compute
        if compute.workers_per_model == 1 or self.makes.get(stage) != "model":
            return {}
        return {"workers_per_model": compute.workers_per_model, "sync_batch_norm": compute.sync_batch_norm}

    def packages(self, recipes: Iterable[Recipe]) -> tuple[str, ...]:
        """Return the packages beside torch that make models or train them by ``recipes``."""
        models = [self.plan.model, getattr(self.plan, "shadow_model", None)]
        texts = any(model is not None and model.name == "bert" for model in models)
        private = any(recipe.private for recipe in recipes)
        return (*(["opacus"] if private else []), *(["transformers"] if texts else []))

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipes of the plan's models."""
        return (self.plan.recipe,)

    def job(
        self,
        stage: str,
        document: dict[str, Any],
        needs: Iterable[str],
        code: Iterable[type],
        recipes: Sequence[Recipe] | None = None,
        **place: Any,
    ) -> Job:
        """Return the job of ``stage`` for ``document``, completed by platform and code version.

        ``code``: classes of the architectures, method, kind or attacks that take part; ``recipes``: those by which the
        job trains, all of the plan by default. Where they are private, the engine of private training counts.
        """
        used = self.recipes if recipes is None else recipes
        modules = tuple(dict.fromkeys(module for part in code for module in modules_of(part)))
        own = (*modules, *engines(used), *own_fits(used))
        platform = self.platform(used) | self.team(stage)
        whole = {**document, "code": self.code_of(stage, own), "platform": platform}
        return Job(stage, artefact_key(stage, whole), tuple(dict.fromkeys(needs)), whole, self.plan_hash, **place)

    def code_of(self, stage: str, components: Sequence[str] = ()) -> str:
        """Return the version of the code of ``stage`` and of the ``components`` (modules) that take part."""
        return code_version((self.bodies[stage], *components))


def modules_of(part: type) -> tuple[str, ...]:
    """Return the modules whose code makes a component: its own, or those behind one that a user has brought."""
    return vars(part).get("made_of") or (part.__module__,)


@cache
def installed(package: str) -> str:
    """Return the installed version of a package; its metadata are read once, not for every job.

    Raises BadInput for one that the plan needs and that is not installed.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        needed = f"this plan needs the package {package}, which is not installed: {command(package)}"
        raise BadInput(needed) from None


def engines(recipes: Iterable[Recipe]) -> tuple[str, ...]:
    """Return the modules of private training that take part in trainings by ``recipes``."""
    used = dict.fromkeys(recipe.private_engine for recipe in recipes if recipe.private)
    return tuple(ENGINES[engine].__module__ for engine in used)


def own_fits(recipes: Iterable[Recipe]) -> tuple[str, ...]:
    """Return the modules of users' own training that take part in trainings by ``recipes``."""
    return tuple(dict.fromkeys(taken_apart(recipe.fit)[0] for recipe in recipes if recipe.fit is not None))


class OneArchitecture(KeyedJobs):
    """Makes the jobs of a plan whose models all have one architecture."""

    @property
    def architecture(self) -> tuple[type]:
        """The class of the plan's architecture."""
        return (MODELS[self.plan.model.name],)
