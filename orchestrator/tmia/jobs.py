"""The jobs of a TMIA plan: train the models, query them, select candidates, query with labels only, score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput
from audits.tmia.attacks import ATTACKS
from audits.tmia.attacks.shadows import SHADOWS
from audits.tmia.candidate_uniqueness import CandidateUniqueness
from audits.tmia.design import TRAINED
from audits.tmia.selectors import SELECTORS
from orchestrator.engine.given import POINTS, GivenJobs
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.jobs.keys import digest, file_digest
from orchestrator.engine.keyed_jobs import OneArchitecture
from orchestrator.tmia.design import GIVEN, Fitted, TmiaDesign, fit_sample
from orchestrator.tmia.shared_pool import pool_sets

if TYPE_CHECKING:
    from audits.arrays import Ids
    from audits.tmia.design import Group
    from audits.training.recipe import Recipe

LOOKED_LEAST = 2
"""Points at which a model is looked into: the uniqueness of each is measured against others."""
LABEL_KINDS = ("distances", "votes")


def looked_into(group: Group) -> int | None:
    """Return how many models of a group have their weights looked into; None: all."""
    return SHADOWS if group == "reference" else None


class TmiaJobs(GivenJobs, TmiaDesign, OneArchitecture):
    """Lists the jobs of one TMIA plan on its data; ``device`` is "cpu" or "cuda"."""

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipes of both sides."""
        return (self.plan.recipe, *([self.plan.transfer.recipe] if self.plan.transfer.recipe else []))

    @property
    def target_classes(self) -> int:
        """How many classes a given target tells apart: those of its side."""
        return len(self.classes(self.asked_side))

    def asked_points(self) -> Ids:
        """Return the points of the candidates' data set about which the target is asked."""
        import numpy as np

        fields = ("members", "non_members") if self.asked_side == "own" else ()
        asked: Ids = np.unique(np.concatenate([self.sets.candidates, *(fit_sample(self.known(one)) for one in fields)]))
        return asked

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan."""
        return [
            *([self.given_job(POINTS)] if self.plan.target is not None else []),
            *(self.train_job(model) for model in self.models.values()),
            *self.posterior_jobs,
            *self.fit_point_jobs,
            *self.look_jobs,
            self.select_job(),
            *chain.from_iterable(self.label_jobs(kind) for kind in self.label_kinds),
            self.score_job(),
        ]

    @property
    def weight(self) -> int:
        """A rough measure of the work after training: the jobs that ask with labels only."""
        return sum(len(self.label_jobs(kind)) for kind in self.label_kinds)

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        match job.stage:
            case "given":
                return self.given_job(job.member)
            case "train":
                return self.train_job(self.models[job.member])
            case "select":
                return self.select_job()
            case "look":
                return self.look_job(job.label, job.unit)  # type: ignore[arg-type]  # labels are groups
            case "query":
                return self.query_job(job.kind, job.label, job.unit, job.shard)  # type: ignore[arg-type]  # labels are groups
        return self.score_job()

    def train_job(self, model: Fitted) -> Job:
        """Return the job that trains ``model``, from its teacher if it has one, or brings in the one that is given."""
        if model.name == GIVEN:
            return self.given_job("weights")
        if model.name not in self._fits:
            self._fits[model.name] = self.make_train_job(model)
        return self._fits[model.name]

    @property
    def given_code(self) -> tuple[type, ...]:
        """The class of the plan's architecture."""
        return self.architecture

    def about_given(self, name: str) -> dict[str, Any]:
        """Return what decides what a job brings in: with the model its side, whose classes and inputs it has."""
        about = super().about_given(name)
        if name == POINTS:
            return about
        transfer = self.plan.transfer
        return {
            **about,
            "classes": list(self.classes(self.asked_side)),
            "asked": self.data_of_side(self.asked_side).fingerprint,
            "input": transfer.teacher_input,
        }

    @cached_property
    def _fits(self) -> dict[str, Job]:
        return {}

    def make_train_job(self, model: Fitted) -> Job:
        """Return the job that trains ``model``; its document is made anew."""
        side, needs = model.side, []
        document: dict[str, Any] = {
            "data": self.data_of_side(side).fingerprint,
            "classes": list(self.classes(side)),
            "points": digest(model.train),
            "count": len(model.train),
            "test": digest(model.test),
            "model": self.plan.model.model_dump(mode="json"),
            "recipe": asdict(self.recipe_of(model)),
            "seed": self.plan.seed,
            "member": model.name,
        }
        if model.teacher:
            needs.append(self.train_job(self.models[model.teacher]).key)
            document |= {"teacher": needs[0], "n_frozen": self.plan.transfer.n_frozen}
        elif self.student(model):
            transfer = self.plan.transfer
            document |= {"teacher": self.teacher_digest, "n_frozen": transfer.n_frozen, "input": transfer.teacher_input}
        return self.job("train", document, needs, self.architecture, member=model.name)

    @cached_property
    def teacher_digest(self) -> str:
        """The digest of the teacher's file, which is read once: it may hold hundreds of megabytes."""
        assert self.plan.transfer.teacher is not None, "students have a teacher"
        return file_digest(self.plan.transfer.teacher)

    @cached_property
    def label_kinds(self) -> tuple[str, ...]:
        """What is asked with labels only, by the attacks of the plan."""
        attacks = [ATTACKS[name] for name in self.plan.audit.attacks]
        read = {kind for attack in attacks for kind in attack.reads}
        found = [kind for kind, name in (("distances", "distance"), ("votes", "votes")) if name in read]
        return (*found, *(["pairs"] if any(attack.reconstructs for attack in attacks) else []))

    def label_jobs(self, kind: str) -> list[Job]:
        """Return the jobs that ask one kind of question with labels only."""
        if kind == "pairs":
            return [
                self.query_job(kind, group, unit, 0)
                for group, models in self.paired.items()
                for unit in range(len(self.units(group, models)))
            ]
        return [
            self.query_job(kind, group, unit, shard)
            for group in TRAINED
            for unit in range(len(self.units(group)))
            for shard in range(self.shards())
        ]

    @property
    def paired(self) -> dict[Group, int | None]:
        """Groups, and how many of their models, whose distances at the attacker's own points a map is fitted to."""
        settings = self.plan.audit.reconstruction
        return {"reference": settings.models} if settings.pairs == "reference" else {"target": None}

    @cached_property
    def posterior_jobs(self) -> tuple[Job, ...]:
        """The jobs that read posteriors of all models: of candidates, and of reference models at the samples too."""
        return tuple(
            self.query_job("posteriors", group, unit, 0) for group in TRAINED for unit in range(len(self.units(group)))
        )

    @cached_property
    def fit_point_jobs(self) -> tuple[Job, ...]:
        """The jobs that read posteriors of reference models at the points of the fit, where distances are asked.

        They stand apart from ``posterior_jobs``, on which the order of the candidates and so every distance depends:
        other points of the fit ask no candidate again.
        """
        units = range(len(self.units("reference"))) if "pairs" in self.label_kinds else range(0)
        return tuple(self.query_job("fit_points", "reference", unit, 0) for unit in units)

    @cached_property
    def look_jobs(self) -> tuple[Job, ...]:
        """The jobs that look into the weights of targets, null models and the first ``SHADOWS`` reference models."""
        if not any("white_box" in ATTACKS[name].reads for name in self.plan.audit.attacks):
            return ()
        self.check_looked()
        return tuple(
            self.look_job(group, unit)
            for group in TRAINED
            for unit in range(len(self.units(group, looked_into(group))))
        )

    def check_looked(self) -> None:
        """Refuse samples that are too few to look into models at half of them, and to teach proxies the other half."""
        import numpy as np

        asked = f"audit.reference_samples is {self.plan.audit.reference_samples}"
        if len(self.looked_at) < LOOKED_LEAST:
            raise BadInput(f"{asked}, and models are looked into at half of them, {LOOKED_LEAST} or more; raise it")
        units = chain.from_iterable(self.units(group, looked_into(group)) for group in TRAINED)
        for model in chain.from_iterable(units) if self.asked_side == "own" else ():
            if np.isin(self.proxy_points, model.train).all():
                raise BadInput(f"{asked}: model {model.name} trains on all with which a proxy could learn; raise it")

    def looked_models(self, group: Group, unit: int) -> list[Fitted]:
        """Return the unit of models of a group whose weights are looked into."""
        return self.units(group, looked_into(group))[unit]

    def look_job(self, group: Group, unit: int) -> Job:
        """Return the job that looks into the weights of one unit of models."""
        keys = [self.train_job(model).key for model in self.looked_models(group, unit)]
        points = self.looked_at if group == "reference" else self.sets.candidates
        document = {
            "data": self.data.fingerprint,
            "models": keys,
            "model": self.plan.model.model_dump(mode="json"),
            "points": digest(points),
            "count": len(points),
            "proxy": digest(self.proxy_points),
            "classes": list(self.classes("own")),
            "star": self.plan.audit.y_star,
            "chunk": self.plan.compute.chunk,
        }
        return self.job("look", document, keys, self.architecture, label=group, unit=unit)

    def query_job(self, kind: str, group: Group, unit: int, shard: int) -> Job:
        """Return the job that asks one unit of models one kind of question about one shard of candidates."""
        models = self.units(group, self.paired[group] if kind == "pairs" else None)[unit]
        keys = [self.train_job(model).key for model in models]
        document: dict[str, Any] = {
            "kind": kind,
            "data": self.data.fingerprint,
            "models": keys,
            "model": self.plan.model.model_dump(mode="json"),
            "candidates": digest(self.sets.candidates),
            "classes": list(self.classes("own")),
            "chunk": self.plan.compute.chunk,
            "seed": self.plan.seed,
        }
        needs = list(keys)
        audit = self.plan.audit
        if kind == "posteriors":
            document |= {"samples": digest(self.samples) if group == "reference" else None}
        elif kind == "fit_points":
            document |= {"points": digest(self.fit_points)}
        else:
            document |= {"star": audit.y_star, "starts": digest(self.samples)}
        if kind in LABEL_KINDS:
            rows = self.rows(shard)
            document |= {"order": self.select_job().key, "first": rows.start, "count": rows.stop - rows.start}
            needs.append(self.select_job().key)
        if kind in ("distances", "pairs"):
            document |= {"schedule": audit.hop_skip_jump.model_dump()}
        if kind == "pairs":
            seen = [*self.reference_posteriors(), *(job.key for job in self.fit_point_jobs)]
            document |= {"points": digest(self.fit_points), "seen": seen}
            needs += seen
        if kind == "votes":
            document |= {"noise": audit.noise.model_dump()}
        return self.job("query", document, needs, self.architecture, kind=kind, label=group, unit=unit, shard=shard)

    def reference_posteriors(self) -> list[str]:
        """Return the keys of what reference models said about candidates and samples."""
        return [self.query_job("posteriors", "reference", unit, 0).key for unit in range(len(self.units("reference")))]

    def select_job(self) -> Job:
        """Return the job that scores candidates by every selector and puts them into an order."""
        return self._select_job

    @cached_property
    def _select_job(self) -> Job:
        asked = self.reference_posteriors()
        models = [self.train_job(model).key for model in self.models_of("reference")]
        document = {
            "posteriors": asked,
            "models": models,
            "model": self.plan.model.model_dump(mode="json"),
            "data": self.data.fingerprint,
            "candidates": digest(self.sets.candidates),
            "samples": digest(self.samples),
            "train_size": self.plan.split.train_size,
            "star": self.plan.audit.y_star,
            "selectors": list(self.plan.audit.selectors),
            "delta": self.plan.audit.neighbours.delta,
            "seed": self.plan.seed,
        }
        watched = (CandidateUniqueness,) if "gnq" in self.plan.audit.selectors else ()
        code = (*self.architecture, *(SELECTORS[name] for name in self.plan.audit.selectors), *watched)
        return self.job("select", document, (*asked, *models), code)

    def score_job(self) -> Job:
        """Return the job in which the attacks speak about all candidates."""
        audit = self.plan.audit
        labels = {kind: [job.key for job in self.label_jobs(kind)] for kind in self.label_kinds}
        document: dict[str, Any] = {
            "posteriors": [job.key for job in self.posterior_jobs],
            "fit_points": [job.key for job in self.fit_point_jobs],
            "look": [job.key for job in self.look_jobs],
            "labels": labels,
            "order": self.select_job().key,
            "attacks": list(audit.attacks),
            "mode": audit.mode,
            "star": audit.y_star,
            "alpha": audit.alpha.model_dump(),
            "rare": audit.neighbours.rare,
            "beta": audit.beta,
            "pool_sets": str(pool_sets(self.plan)),
            "map": audit.reconstruction.model_dump(),
            "pool": audit.asked,
            "level": audit.level,
            "bootstrap": audit.bootstrap,
            "candidates": digest(self.sets.candidates),
            "truth": digest(self.sets.membership),
            "overfitted": digest(self.sets.overfitted_membership),
            "samples": digest(self.samples),
            "reference": digest(self.sets.reference),
            "seed": self.plan.seed,
        }
        needs = (
            *document["posteriors"],
            *document["fit_points"],
            *document["look"],
            *chain.from_iterable(labels.values()),
            document["order"],
        )
        return self.job("score", document, needs, [ATTACKS[name] for name in audit.attacks])
