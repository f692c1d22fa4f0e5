"""The jobs of a GNQ plan: train watched models, look at their training, defend, invert, score pools under arms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from audits.gnq.attacks import POOL_ATTACKS
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.jobs.keys import digest
from orchestrator.engine.keyed_jobs import OneArchitecture
from orchestrator.gnq.design import GnqDesign, Watched, check_images
from orchestrator.gnq.inversion_documents import matched, sought
from orchestrator.gnq.plan import NONE

if TYPE_CHECKING:
    from audits.training.recipe import Recipe

LOOKED_BY = ("modes", "ridge", "chunk")
"""What decides looks and, where they are jobs of their own, not the training."""


class GnqJobs(GnqDesign, OneArchitecture):
    """Lists the jobs of one GNQ plan on its data; ``device`` is "cpu" or "cuda"."""

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipes of the watched models and of private ones."""
        return (self.plan.recipe, *(each.recipe for each in self.plan.defences if each.recipe is not None))

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan; BadInput for inversion of data that are no images."""
        check_images(self.plan, self.data)  # a sweep may have asked for inversion, and its plan is checked before
        arms = [arm for arm in self.plan.arms if arm != NONE]
        return [
            *(self.train_job(model) for model in self.models.values()),
            *(job for model in self.models.values() for job in self.look_units(model)),
            *(self.defend_job(model, arm) for arm in arms for model in self.models.values()),
            *(self.invert_job(pool, arm) for pool, arm in (self.places if self.inverts else ())),
            *(self.match_job(pool, place) for place in self.matched_looks for pool in range(self.plan.split.pools)),
            *(self.score_job(pool, arm) for pool, arm in self.places),
        ]

    @property
    def places(self) -> list[tuple[int, str]]:
        """Every pool under every arm, arm by arm."""
        return [(pool, arm) for arm in self.plan.arms for pool in range(self.plan.split.pools)]

    @property
    def inverts(self) -> bool:
        """Are images sought in the models?"""
        return self.plan.audit.inversion is not None

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        match job.stage:
            case "train":
                return self.train_job(self.models[job.member])
            case "look" if job.shard >= 0:
                return self.row_job(self.models[job.member], job.unit, job.shard)
            case "look":
                return self.look_job(self.models[job.member], job.unit)
            case "defend":
                return self.defend_job(self.models[job.member], job.label)
            case "invert":
                return self.invert_job(job.unit, job.label)
            case "match":
                return self.match_job(job.unit, job.shard)
        return self.score_job(job.unit, job.label)

    def fitting(self, model: Watched, recipe: Recipe) -> dict[str, Any]:
        """Return what decides every training of a model, and what it is asked."""
        return {
            "data": self.data.fingerprint,
            "classes": list(self.classes),
            "points": digest(self.points(model)),
            "count": self.plan.split.train_size,
            "asked": {name: digest(ids) for name, ids in self.points_by_name(model).items()},
            "test": digest(self.drawn.test),
            "model": self.plan.model.model_dump(mode="json"),
            "recipe": asdict(recipe),
        }

    def train_job(self, model: Watched) -> Job:
        """Return the job that trains ``model`` and sees the points that it trains on, or keeps weights for looks."""
        if model.name not in self._watched:
            audit = self.plan.audit
            document = {
                **self.fitting(model, self.plan.recipe),
                "modes": list(self.modes(model)),
                "ridge": audit.ridge,
                "checkpoints": audit.checkpoints,
                "chunk": self.plan.compute.chunk,
                "seed": model.seed,
                **({"in_batch": True} if self.in_batch(model) else {}),
                **({"held_out": self.held_out(model)} if self.held_out(model) else {}),
            }
            if not self.seen(model):
                document = {name: value for name, value in document.items() if name not in (*LOOKED_BY, "checkpoints")}
                document["kind"] = "unseen"
            elif self.apart:
                document = {name: value for name, value in document.items() if name not in LOOKED_BY}
                document |= {"kind": "apart", "steps": list(self.looks)}
            self._watched[model.name] = self.job(
                "train", document, (), self.architecture, (self.plan.recipe,), member=model.name
            )
        return self._watched[model.name]

    @cached_property
    def _watched(self) -> dict[str, Job]:
        return {}

    def look_units(self, model: Watched) -> Iterator[Job]:
        """Yield the jobs of all looks at a model, shards before what joins them; none where it is watched."""
        for place in range(len(self.looks) if self.apart and self.seen(model) else 0):
            yield from (self.row_job(model, place, shard) for shard in range(len(self.shards(model))))
            yield self.look_job(model, place)

    def look_job(self, model: Watched, place: int) -> Job:
        """Return the job that scores the points of ``model`` at one of its checkpoints, counted by ``place``."""
        rows = [self.row_job(model, place, shard).key for shard in range(len(self.shards(model)))]
        asked = {
            "kind": "joined" if rows else "whole",
            "modes": list(self.modes(model)),
            "ridge": self.plan.audit.ridge,
            "rows": rows,
        }
        return self.looking(model, place, -1, asked)

    def row_job(self, model: Watched, place: int, shard: int) -> Job:
        """Return the job that makes the rows of one shard of the Gram matrix at a checkpoint of ``model``."""
        asked = {"kind": "rows", "settings": {"rows": list(self.shards(model)[shard])}}
        return self.looking(model, place, shard, asked)

    def looking(self, model: Watched, place: int, shard: int, asked: dict[str, Any]) -> Job:
        """Return a job of stage look; ``asked``: what is sought, beside what decides every look at a model."""
        found = model.name, place, shard
        if found not in self._looking:
            watched = self.train_job(model)
            document = {
                "watched": watched.key,
                "step": self.looks[place],
                **{name: watched.document[name] for name in ("data", "classes", "points", "count", "model")},
                "chunk": self.plan.compute.chunk,
                **asked,
            }
            needs = (watched.key, *asked.get("rows", ()))
            job = self.job("look", document, needs, self.architecture, (), member=model.name, unit=place, shard=shard)
            self._looking[found] = job
        return self._looking[found]

    @cached_property
    def _looking(self) -> dict[tuple[str, int, int], Job]:
        return {}

    def trace_jobs(self, model: Watched) -> list[Job]:
        """Return the jobs that hold what was seen of a model's points: its training, or the looks at it in turn."""
        if not self.apart:
            return [self.train_job(model)]
        return [self.look_job(model, place) for place in range(len(self.looks) if self.seen(model) else 0)]

    def looks_at(self, models: Iterable[Watched]) -> dict[str, list[str]]:
        """Return the keys of all looks at ``models``, for the document of a job that reads their traces; {} of none."""
        keys = [job.key for model in models for job in self.trace_jobs(model)] if self.apart else []
        return {"looks": keys} if keys else {}

    def defend_job(self, model: Watched, arm: str) -> Job:
        """Return the job that trains ``model`` once more behind the defence called ``arm``."""
        place = model.name, arm
        if place not in self._defended:
            defence = self.plan.arms[arm]
            assert defence is not None, "arm none has no job of its own"
            watched = () if defence.method == "dp_sgd" else (self.train_job(model).key,)
            if defence.ranking == "twin_loss":
                watched = (*watched, self.train_job(self.twin(model)).key)
            looks = self.looks_at([model] if watched else [])
            document = {
                **self.fitting(model, defence.recipe or self.plan.recipe),
                "watched": list(watched),
                **looks,
                "defence": defence.model_dump(mode="json", exclude={"recipe"}),
                "method": defence.method,
                "seed": model.retraining_seed,
            }
            needs = chain(watched, *looks.values())
            recipe = defence.recipe or self.plan.recipe
            job = self.job("defend", document, needs, self.architecture, (recipe,), member=model.name, label=arm)
            self._defended[place] = job
        return self._defended[place]

    @cached_property
    def _defended(self) -> dict[tuple[str, str], Job]:
        return {}

    def made(self, model: Watched, arm: str) -> Reference:
        """Return where the model stands that an arm publishes."""
        if arm == NONE:
            return Reference("train", self.train_job(model).key)
        return Reference("defend", self.defend_job(model, arm).key)

    def invert_job(self, pool: int, arm: str) -> Job:
        """Return the job in which the most exposed images of a pool's targets are sought in the models of an arm."""
        targets = self.of(pool, "target")
        watched = [self.train_job(model).key for model in targets]  # their traces rank the images, whatever the arm
        looks = self.looks_at(targets)
        defended = [] if arm == NONE else [self.defend_job(model, arm).key for model in targets]
        document = {"watched": watched, **looks, "defended": defended, **sought(self, pool)}
        needs = chain(watched, *looks.values(), defended)
        return self.job("invert", document, needs, self.architecture, (), label=arm, unit=pool)

    def match_job(self, pool: int, place: int) -> Job:
        """Return the job in which points of a pool's targets are sought from their gradients at a checkpoint."""
        targets = self.of(pool, "target")
        watched = [self.train_job(model).key for model in targets]
        looks = self.looks_at(targets)
        document = {"watched": watched, **looks, **matched(self, pool, place)}
        needs = chain(watched, *looks.values())
        return self.job("match", document, needs, self.architecture, (), unit=pool, shard=place)

    def score_job(self, pool: int, arm: str) -> Job:
        """Return the job in which all attacks judge the targets of a pool under an arm."""
        audit = self.plan.audit
        own = [*self.of(pool, "target"), *self.of(pool, "shadow")]
        before = [self.train_job(model).key for model in own]
        looks = self.looks_at(self.of(pool, "target") if arm == NONE else [])  # what rankings predict is told there
        after = [] if arm == NONE else [self.defend_job(model, arm).key for model in own]
        null = [self.made(model, arm).key for model in self.null_models(pool)]
        document = {
            "watched": before,
            **looks,
            "defended": after,
            "null": null,
            "model": self.plan.model.model_dump(mode="json"),
            "pool": digest(self.drawn.pools[pool]),
            "halves": digest(self.halves(own)),
            "arm": arm,  # a label that depends on the other arms, written into the table
            "attacks": list(audit.attacks),
            "modes": list(audit.modes),
            "bins": audit.bins,
            "onion": audit.onion,
            "chunk": self.plan.compute.chunk,
            "seed": self.plan.seed,
        }
        code = (*self.architecture, *(POOL_ATTACKS[name] for name in audit.attacks))
        needs = chain(before, *looks.values(), after, null)
        return self.job("score", document, needs, code, (), label=arm, unit=pool)
