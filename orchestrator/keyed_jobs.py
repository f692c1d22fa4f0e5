"""Jobs with keys: a job's document is completed by platform and code, and the key is the hash of the document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestrator.jobs import Job
from orchestrator.keys import artefact_key

if TYPE_CHECKING:
    from audits.training.recipe import Recipe


class KeyedJobs:
    """Makes the jobs of one plan on one ``device``, "cpu" or "cuda"."""

    if TYPE_CHECKING:
        plan: Any
        device: str

    @cached_property
    def plan_hash(self) -> str:
        """The hash of the plan."""
        return str(self.plan.plan_hash)

    def platform(self, recipes: Iterable[Recipe]) -> dict[str, Any]:
        """Return what decides the last bits of a number beside the plan: library, device, threads."""
        from importlib.metadata import version

        return {
            "torch": version("torch"),
            "device": self.device.partition(":")[0],
            "threads": self.plan.compute.threads,
            **{package: version(package) for package in self.packages(recipes)},
        }

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
        from orchestrator.codeversion import code_version

        used = self.recipes if recipes is None else recipes
        modules = tuple(dict.fromkeys(part.__module__ for part in code))
        own = (*(name for name in modules if name.startswith("audits.")), *engines(used))
        whole = {**document, "code": code_version(stage, own), "platform": self.platform(used)}
        return Job(stage, artefact_key(stage, whole), tuple(dict.fromkeys(needs)), whole, self.plan_hash, **place)


def engines(recipes: Iterable[Recipe]) -> tuple[str, ...]:
    """Return the modules of private training that take part in trainings by ``recipes``."""
    used = dict.fromkeys(recipe.private_engine for recipe in recipes if recipe.private)
    return tuple(f"audits.training.private_{engine}" for engine in used)


class OneArchitecture(KeyedJobs):
    """Makes the jobs of a plan whose models all have one architecture, and whose design waits for no ranking."""

    def ranking_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that must be done before there is a design: none."""
        return ()

    @property
    def architecture(self) -> tuple[type]:
        """The class of the plan's architecture."""
        from audits.models import MODELS

        return (MODELS[self.plan.model.name],)
