"""The jobs of a membership plan: train models, ask them, walk to boundaries, score pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from audits.mia.attacks import MIA_ATTACKS
from orchestrator.engine.given import POINTS, GivenJobs
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.jobs.keys import digest
from orchestrator.mia.design import GIVEN, Fitted, MiaDesign
from orchestrator.mia.given_checks import check_sizes

if TYPE_CHECKING:
    from audits.arrays import Ids
    from audits.training.recipe import Recipe


class MiaJobs(MiaDesign, GivenJobs):
    """Lists the jobs of one membership plan on its data; ``device`` is "cpu" or "cuda"."""

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipes of targets and shadows."""
        return (self.plan.recipe, *([self.plan.shadow_recipe] if self.plan.shadow_recipe else []))

    @property
    def weight(self) -> int:
        """A rough measure of the work after training: shadows that are asked and fitted."""
        return int(self.plan.split.pools * self.plan.split.shadows)

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan."""
        pools = range(self.plan.split.pools)
        if self.given is not None:
            check_sizes(self.plan, self.given.members, self.given.non_members)
        return [
            *self.given_jobs(),
            *(self.train_job(model) for model in self.models.values() if not self.is_given(model)),
            *map(self.ask_job, pools),
            *(self.walk_job(pool) for pool in pools if self.walks),
            *map(self.score_job, pools),
        ]

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        match job.stage:
            case "given":
                return self.given_job(job.member)
            case "train":
                return self.train_job(self.models[job.member])
            case "ask":
                return self.ask_job(job.unit)
            case "walk":
                return self.walk_job(job.unit)
        return self.score_job(job.unit)

    def trained(self, model: Fitted) -> Reference:
        """Return where a model stands in the store."""
        return self.given_model() if self.is_given(model) else Reference("train", self.train_job(model).key)

    def is_given(self, model: Fitted) -> bool:
        """Say whether a model is the given target, which is never trained."""
        return self.target is not None and model.name == GIVEN

    @property
    def known_points(self) -> Mapping[str, Ids]:
        """The members and non-members of a given target, by field of the plan's section ``target``."""
        return self.given_points

    @property
    def given_code(self) -> tuple[type, ...]:
        """The class of the architecture of a given target."""
        return self.architecture(self.models[GIVEN])

    def ask_key(self, pool: int) -> str:
        """Return the key of the answers of a pool's models."""
        return self.ask_job(pool).key

    def walk_key(self, pool: int) -> str:
        """Return the key of the distances of a pool's judged models."""
        return self.walk_job(pool).key

    def about(self, pool: int) -> dict[str, Any]:
        """Return what decides the points of a pool and what is known about them."""
        return {
            "data": self.data.fingerprint,
            "classes": list(self.classes),
            "pool": digest(self.drawn.pools[pool]),
            "taught": digest(self.taught(pool).labels),
            "test": digest(self.drawn.test),
            **self.about_target(),
        }

    def about_target(self) -> dict[str, Any]:
        """Return what decides the points of a given target's pool beside; nothing where targets are trained."""
        if self.given is None:
            return {}
        return {"filler": digest(self.given.filler), "points": len(self.given.pool) + len(self.given.test)}

    def train_job(self, model: Fitted) -> Job:
        """Return the job that trains ``model`` and measures how well it fits."""
        if model.name not in self._made:
            document = {
                **self.about(model.pool),
                "half": digest(model.half),
                "count": len(self.trained_on(model)),
                "model": self.model_of(model).model_dump(mode="json"),
                "recipe": asdict(self.recipe_of(model)),
                "seed": model.seed,
            }
            self._made[model.name] = self.job(
                "train", document, self.listed, self.architecture(model), (self.recipe_of(model),), member=model.name
            )
        return self._made[model.name]

    @property
    def listed(self) -> tuple[str, ...]:
        """The keys of the lists of points that a plan is given: what jobs need before anything is laid out."""
        return () if self.target is None else (self.given_job(POINTS).key,)

    @cached_property
    def _made(self) -> dict[str, Job]:
        return {}

    def ask_job(self, pool: int) -> Job:
        """Return the job in which all models of a pool, and its null models, answer at its points and test points."""
        asked = [self.trained(model).key for model in self.models_judged(pool)]
        shadows = [self.train_job(model).key for model in self.of(pool, "shadow")]
        strangers = [self.train_job(model).key for model in self.strangers(pool)]
        document = {
            **self.about(pool),
            "judged": asked,
            "shadows": shadows,
            "strangers": strangers,
            "models": self.built,
        }
        return self.job("ask", document, (*asked, *shadows, *strangers), self.architectures, (), unit=pool)

    @property
    def built(self) -> dict[str, Any]:
        """The architectures of targets and shadows as plain values."""
        resolved = self.plan.resolved()
        return {name: resolved[name] for name in ("model", "shadow_model")}

    def walk_job(self, pool: int) -> Job:
        """Return the job in which distances to boundaries are searched in the judged models of a pool."""
        asked = [self.trained(model).key for model in self.models_judged(pool)]
        document = {
            **self.about(pool),
            "judged": asked,
            "models": self.built["model"],
            "asked": digest(self.boundary_points(pool)),
            "known": digest(self.known_asked(pool)),
            "count": self.plan.audit.hop_skip_jump.points,
            "schedule": self.plan.audit.hop_skip_jump.schedule,
            "chunk": self.plan.compute.chunk,
            "seed": self.plan.seed,
        }
        return self.job("walk", document, asked, self.architectures, (), unit=pool)

    def score_job(self, pool: int) -> Job:
        """Return the job in which all attacks judge the targets and null models of a pool."""
        audit = self.plan.audit
        needs = [self.ask_key(pool), *([self.walk_key(pool)] if self.walks else [])]
        document = {
            "answers": needs,
            "halves": digest(
                [model.half for model in (*self.of(pool, "target"), *self.of(pool, "own"), *self.of(pool, "shadow"))]
            ),
            "attacks": list(audit.attacks),
            "fpr": list(audit.fpr),
            "pool": pool,  # a label, written into the table
            "judge": self.plan.judge,
            "judged": [model.name for model in self.models_judged(pool)],
            "seed": self.plan.seed,
            **({} if self.plan.target is None else {"by_chance": self.plan.target.by_chance, "level": audit.level}),
        }
        code = (*self.architectures, *(MIA_ATTACKS[name] for name in audit.attacks))
        return self.job("score", document, needs, code, (), unit=pool)
