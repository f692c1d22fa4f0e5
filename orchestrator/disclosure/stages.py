"""Stages watch and look, and what all stages of a disclosure audit do with its models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from audits.errors import BadInput
from orchestrator.disclosure.plan import NONE
from orchestrator.jobs import Job, Reference
from orchestrator.stages.models import METRICS, pack_weights, privacy
from orchestrator.stages.workshop import WEIGHTS, Workshop
from orchestrator.store import pack_arrays, pack_json, unpack_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from numpy.typing import NDArray
    from torch import nn

    from audits.data.tensors import TensorSet
    from audits.disclosure.accumulate import Trace
    from audits.training.recipe import Recipe
    from orchestrator.disclosure.layout import Watched
    from orchestrator.disclosure.schedule import DisclosureScheduler

ANSWERS = "answers.safetensors"
TRACE = "trace.safetensors"
CHECKPOINT = "checkpoint-{}.safetensors"
"""Weights after so many steps: a file each, since a look reads one of them."""
ROWS = "rows.safetensors"
MODE, LOG, TOTAL, OWN_STEPS = "gnq.", "in_batch.log.", "in_batch.total.", "in_batch.steps"


def scheduler(shop: Workshop) -> DisclosureScheduler:
    """Return the plan's scheduler."""
    return cast("DisclosureScheduler", shop.scheduler)


def watch(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Train one model, see its points at checkpoints or keep its weights there, and ask it about its pool."""
    from audits.disclosure.accumulate import fit_kept, fit_traced
    from audits.training.loop import fit

    layout = scheduler(shop)
    model, audit, recipe = layout.models[job.member], layout.plan.audit, layout.plan.recipe
    points = tensors(shop, layout.points(model))
    found = fresh(shop, model.seed)
    try:
        if not layout.seen(model):
            fit(found, points, recipe, seed=seed_of(model.seed))
            return finished(shop, model, found, points, recipe)
        if layout.apart:
            kept = fit_kept(found, points, recipe, seed=seed_of(model.seed), every=layout.every)
            weights = {CHECKPOINT.format(step): pack_state(state) for step, state in kept.items()}
            return {**finished(shop, model, found, points, recipe), **weights}
        trace = fit_traced(
            found, points, recipe, seed=seed_of(model.seed), every=layout.every, modes=layout.modes(model),
            ridge=audit.ridge, in_batch=layout.in_batch(model), chunk=layout.plan.compute.chunk,
        )  # fmt: skip
    except FloatingPointError as error:
        raise BadInput(f"recipe: {model.name}: {error}") from None
    doubts = sum(bool(text) for text in trace.doubts) + (trace.in_batch.doubts if trace.in_batch else 0)
    return {**finished(shop, model, found, points, recipe, doubts=doubts), TRACE: pack_arrays(packed(trace))}


def look(shop: Workshop, job: Job) -> dict[str, bytes]:
    """See a model's points at one checkpoint that its training kept, or some rows of their Gram matrix."""
    from audits.disclosure.accumulate import traced
    from audits.disclosure.gram import from_rows, gram_rows
    from audits.disclosure.scores import point_scores

    layout = scheduler(shop)
    model, chunk = layout.models[job.member], layout.plan.compute.chunk
    points = tensors(shop, layout.points(model))
    seen = at_checkpoint(shop, model, layout.looks[job.unit])
    shards = layout.shards(model)
    if job.shard >= 0:
        rows = gram_rows(seen, points.x, points.y, *shards[job.shard], chunk=chunk)
        return {ROWS: pack_arrays({"K": rows.cpu().numpy()})}
    parts = (rows_of(shop, layout.row_job(model, job.unit, shard)) for shard in range(len(shards)))
    K = from_rows(parts, len(points)) if shards else None
    scores = point_scores(seen, points, layout.modes(model), layout.plan.audit.ridge, chunk=chunk, K=K)
    trace = traced([layout.looks[job.unit]], [scores])
    return {TRACE: pack_arrays(packed(trace)), METRICS: pack_json({"doubts": sum(bool(text) for text in trace.doubts)})}


def pack_state(state: Mapping[str, torch.Tensor]) -> bytes:
    """Return the weights of a checkpoint as a safetensors file."""
    from safetensors.torch import save

    return bytes(save(dict(state)))


def at_checkpoint(shop: Workshop, model: Watched, step: int) -> nn.Module:
    """Return a model as it stood after ``step`` steps of its training, ready to be asked for gradients."""
    from safetensors.torch import load

    from audits.disclosure.validate import made_auditable

    layout = scheduler(shop)
    found = layout.build(0)
    found.load_state_dict(load(shop.store.get("watch", layout.watch_job(model).key).read(CHECKPOINT.format(step))))
    return made_auditable(found.to(layout.device))


def rows_of(shop: Workshop, job: Job) -> torch.Tensor:
    """Return the rows of a Gram matrix that a look left."""
    import torch

    return torch.from_numpy(unpack_arrays(shop.store.get("look", job.key).read(ROWS))["K"]).to(shop.scheduler.device)


def fresh(shop: Workshop, seed: int) -> nn.Module:
    """Return a model with the first weights that a training by ``seed`` starts from."""
    from audits.seeds import derive_seed

    layout = scheduler(shop)
    found: nn.Module = layout.build(derive_seed(seed, "init")).to(layout.device)
    return found


def seed_of(seed: int) -> int:
    """Return the seed of the order of the points, as ``train_model`` derives it."""
    from audits.seeds import derive_seed

    return derive_seed(seed, "fit")


def finished(
    shop: Workshop,
    model: Watched,
    found: nn.Module,
    points: TensorSet,
    recipe: Recipe,
    kept: NDArray[np.bool_] | None = None,
    **measured: int,
) -> dict[str, bytes]:
    """Return the files of a trained model: weights, logits where it is asked, how well it fits, ``measured`` beside."""
    from audits.training.loop import accuracy, logits

    layout = scheduler(shop)
    answers: dict[str, NDArray[Any]] = {
        name: logits(found, tensors(shop, ids).x).float().cpu().numpy() for name, ids in layout.asked(model).items()
    }
    answers["kept"] = model.half if kept is None else kept
    return {
        WEIGHTS: pack_weights(found),
        ANSWERS: pack_arrays(answers),
        METRICS: pack_json(
            {
                "points": len(points),
                "train_accuracy": accuracy(found, points),
                "test_accuracy": accuracy(found, tensors(shop, layout.drawn.test)),
                **steps(recipe, len(points)),
                **privacy(recipe, len(points)),
                **measured,
            }
        ),
    }


def steps(recipe: Recipe, points: int) -> dict[str, int]:
    """Return how many steps a training takes, and how many points its last batch has; private ones: on average."""
    from audits.disclosure.accumulate import steps_of
    from audits.training.private import steps_per_epoch

    if recipe.private:
        return {"steps": recipe.epochs * steps_per_epoch(recipe, points), "last_batch": min(recipe.batch_size, points)}
    return {"steps": steps_of(recipe, points), "last_batch": points % recipe.batch_size or recipe.batch_size}


def tensors(shop: Workshop, ids: NDArray[np.int64]) -> TensorSet:
    """Return points on the plan's device; classes are counted among those that take part."""
    import torch

    from audits.data.tensors import TensorSet

    layout = scheduler(shop)
    points = layout.data.tensors(ids, layout.device)
    classes = torch.tensor(layout.classes, device=points.y.device)
    return TensorSet(points.x, torch.searchsorted(classes, points.y))


def packed(trace: Trace) -> dict[str, NDArray[Any]]:
    """Return a trace as named arrays."""
    arrays = {
        "steps": trace.steps,
        "loss": trace.loss,
        "squared_norm": trace.squared_norm,
    }
    arrays |= {f"{MODE}{mode}": values for mode, values in trace.gnq.items()}
    if (among := trace.in_batch) is not None:
        arrays |= {f"{LOG}{mode}": values for mode, values in among.log.items()}
        arrays |= {f"{TOTAL}{mode}": values for mode, values in among.total.items()}
        arrays[OWN_STEPS] = among.steps
    return arrays


def trace_of(shop: Workshop, model: Watched) -> Trace:
    """Return what was seen of a model's own points while it trained."""
    from audits.disclosure.accumulate import InBatch, Trace

    jobs = scheduler(shop).trace_jobs(model)
    seen = [unpack_arrays(shop.store.get(job.stage, job.key).read(TRACE)) for job in jobs]
    arrays = seen[0] if len(seen) == 1 else {name: np.concatenate([each[name] for each in seen]) for name in seen[0]}

    def by_mode(prefix: str) -> dict[str, NDArray[Any]]:
        return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}

    among = InBatch(by_mode(LOG), by_mode(TOTAL), arrays[OWN_STEPS], 0) if OWN_STEPS in arrays else None
    return Trace(
        steps=arrays["steps"],
        loss=arrays["loss"],
        squared_norm=arrays["squared_norm"],
        gnq=by_mode(MODE),
        doubts=("",) * len(arrays["steps"]),  # counted among the model's metrics
        in_batch=among,
    )


def stored(shop: Workshop, model: Watched, arm: str = NONE) -> nn.Module:
    """Return the model that an arm publishes, from the store."""
    layout = scheduler(shop)
    reference: Reference = layout.made(model, arm)
    return shop.stored(reference, lambda: layout.build(0))
