"""Models and points of a GNQ plan, as its stages read them, and the traces of trainings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.data.tensors import TensorSet
from audits.signals.loss import minus_loss
from audits.uniqueness.accumulate import InBatch, Trace
from orchestrator.engine.jobs.job import Reference
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.stages.context import Context

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from orchestrator.gnq.design import Watched


ANSWERS = "answers.safetensors"
TRACE = "trace.safetensors"
HELD_OUT = "held_out.safetensors"
MODE, LOG, TOTAL, OWN_STEPS = "gnq.", "in_batch.log.", "in_batch.total.", "in_batch.steps"


def tensors(context: Context, ids: NDArray[np.int64]) -> TensorSet:
    """Return points on the plan's device; classes are counted among those that take part."""
    import torch

    design = context.design
    points = design.data.tensors(ids, design.device)
    classes = torch.tensor(design.classes, device=points.y.device)
    return replace(points, y=torch.searchsorted(classes, points.y))


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


def twin_loss(context: Context, model: Watched) -> NDArray[np.float64]:
    """Return the loss (n,) of a model's own points under its twin, from the answers that the store has."""
    design = context.design
    twin = context.store.get("train", design.train_job(design.twin(model)).key)
    classes = design.labels(design.drawn.pools[model.pool])
    found: NDArray[np.float64] = -minus_loss(unpack_arrays(twin.read(ANSWERS))["own"][None], classes)[0][model.half]
    return found


def held_out_loss(context: Context, model: Watched) -> NDArray[np.float64] | None:
    """Return the held-out loss (n,) of a model's own points; None where no models were trained for it."""
    design = context.design
    if not design.held_out(model):
        return None
    found: NDArray[np.float64] = unpack_arrays(context.store.get("train", design.train_job(model).key).read(HELD_OUT))[
        "loss"
    ]
    return found


def trace_of(context: Context, model: Watched, twin: bool = False) -> Trace:
    """Return what was seen of a model's own points while it trained; with ``twin``, their loss under the twin too."""
    jobs = context.design.trace_jobs(model)
    seen = [unpack_arrays(context.store.get(job.stage, job.key).read(TRACE)) for job in jobs]
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
        twin_loss=twin_loss(context, model) if twin else None,
        held_out_loss=held_out_loss(context, model),
    )


def stored(context: Context, model: Watched, arm: str = NONE) -> nn.Module:
    """Return the model that an arm publishes, from the store."""
    design = context.design
    reference: Reference = design.made(model, arm)
    return context.stored(reference, lambda: design.build(0))
