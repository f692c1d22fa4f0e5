"""Stage radii: at which radii Apollo's theorems expect labels to flip or to stay, and what they did.

An auditor's analysis: it reads the target before and after unlearning and after retraining. No attack reads it.
"""

from __future__ import annotations

from typing import Any

from audits.apollo.evidence import Walks
from audits.seeds import Purpose
from audits.statistics.radii import Side, distance, radius_intervals, sides
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.searching import part
from orchestrator.apollo.stages.stored import stored_model
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays

RADII = "radii.safetensors"
SAMPLES = 16
WAYS: tuple[Side, ...] = ("under", "over")


def radii(context: Context, job: Job) -> dict[str, bytes]:
    """Measure the forgotten candidates of a shadow set under one method, target by target.

    Of K candidates: ``target``, ``point_id`` (K,); ``under``, ``over`` (K, 2), estimated lowest and highest radius, NaN
    where there is none, with Δ_r to the control ``retrain``; ``margin``, ``lipschitz_input``, ``lipschitz_parameters``
    (K,) before unlearning; ``unlearned_distance``, ``retrained_distance`` (K,) of the target; ``flip_under``,
    ``flip_over`` (K,), see ``first_flips``; ``asked_under``, ``asked_over`` (K,), see ``asked_inside``. ``own_…``:
    intervals, distance and what was asked inside with Δ_r to the target that was trained again from its own start.
    """
    import numpy as np

    scheduler, entry = context.design, context.design.by_label[job.label]
    asked = scheduler.partition.candidates[job.shadow_set]
    walks = part(context, "apollo", job.document["evidence"])
    assert isinstance(walks, Walks), "Apollo's evidence is walks"
    flips = first_flips(walks)
    columns: dict[str, list[Any]] = {}
    for member in scheduler.targets_of(job.shadow_set):
        rows = np.flatnonzero((asked.target == member.index) & asked.forgotten)
        x, y = context.tensors(asked.ids[rows]).all()
        original, unlearned, retrained, own_start = (
            stored_model(context, reference, member)
            for reference in (
                scheduler.trained(member),
                scheduler.unlearned(member, entry),
                scheduler.unlearned(member, scheduler.retraining),
                scheduler.own_start(member),
            )
        )
        reach = float(walks.radius.max())
        seed = context.seed(Purpose.RADII, member.name)
        found = radius_intervals(original, unlearned, retrained, x, y, radius=reach, samples=SAMPLES, seed=seed)
        moved, needed = distance(unlearned, original), distance(own_start, original)
        constants = found.margin, found.lipschitz_input, found.lipschitz_parameters
        again = dict(zip(WAYS, sides(*constants, moved=moved, needed=needed), strict=True))
        own = {name: value.cpu().numpy() for name, value in vars(found).items()}
        own |= {f"own_{way}": span.cpu().numpy() for way, span in again.items()}
        own |= {
            f"{prefix}asked_{way}": asked_inside(walks.radius[:, rows, place], own[f"{prefix}{way}"])
            for prefix in ("", "own_")
            for place, way in enumerate(WAYS)
        }
        own |= {
            "target": asked.target[rows],
            "point_id": asked.ids[rows],
            "unlearned_distance": np.full(len(rows), moved),
            "retrained_distance": np.full(len(rows), distance(retrained, original)),
            "own_distance": np.full(len(rows), needed),
            **{f"flip_{way}": flips[place, rows] for place, way in enumerate(WAYS)},
        }
        for name, value in own.items():
            columns.setdefault(name, []).append(value)
    return {RADII: pack_arrays({name: np.concatenate(values) for name, values in columns.items()})}


def first_flips(walks: Walks) -> Any:
    """Return (2, K): the smallest radius UNDER and OVER at which the target no longer says the true label.

    Of the two halves' walks the nearer flip counts; 0 where the label at x is another one, NaN where none flips.
    """
    import numpy as np

    head, *ways = walks.blocks
    wrong_at_x = ~walks.target[:, :, head].all(-1)
    found = []
    for place, block in enumerate(ways):
        flipped = ~walks.target[:, :, block]
        first = np.where(flipped, walks.radius[:, :, place], np.inf).min(-1)
        nearest = np.where(wrong_at_x, 0.0, first).min(0)
        found.append(np.where(np.isfinite(nearest), nearest, np.nan))
    return np.stack(found)


def asked_inside(radius: Any, span: Any) -> Any:
    """Return (K,): whether a label was asked inside the interval ``span`` (K, 2), at a ``radius`` (2, K, T) or at 0."""
    import numpy as np

    asked = np.concatenate([*radius, np.zeros((len(span), 1))], axis=-1)
    return ((span[:, :1] <= asked) & (asked < span[:, 1:])).any(-1)
