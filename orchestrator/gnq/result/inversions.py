"""Rows about model inversion: likeness by arm, paired differences, and a few pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.result.arms import AGAINST
from orchestrator.gnq.result.gather import CORRELATION, Found, corrected, interval, paired, pool_means
from orchestrator.gnq.result.rows import InversionGainRow, InversionPicture, InversionRow, PicturedArm
from orchestrator.gnq.stages.inverting import IMAGES, LIKENESS, MEASURES, OWN, START, TWIN, range_of
from orchestrator.report.pictures import thumbnail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audits.data.dataset import Dataset
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

Likeness = Mapping[str, Sequence[Sequence[Found]]]
"""Arm → pool → what stage invert measured of each target, image and model."""

JUDGED = ("ssim_image", "mse_image")
"""Measures of which differences are told: likeness to the image itself."""
WITHIN = {name: CORRELATION if name.startswith("ssim") else (0.0, math.inf) for name in MEASURES}
"""What a measure can be: SSIM lies from −1 to 1."""
FOUND = 0.5
"""Confidence below which a search has not found the class."""
PICTURED = 3
"""Pools whose most exposed image is shown, that of the first target."""
MOST_PIXELS = 128
"""Larger pictures are thinned out to as many a side."""


def read_likeness(setting: Setting, store: Store) -> Likeness:
    """Return what stage invert left, arm by arm and pool by pool; nothing for a plan without inversion.

    Arms are left out in which the training of a target diverged.
    """
    found: dict[str, list[list[Found]]] = {}
    for job in setting.of("invert"):
        found.setdefault(job.label, []).append(json.loads(store.get(job.stage, job.key).read(LIKENESS))["rows"])
    return {arm: pools for arm, pools in found.items() if all(pools)}


def values_of(pools: Sequence[Sequence[Found]], model: str, measure: str) -> list[float | None]:
    """Return the mean of a measure over the targets and images of each pool; None where one is not defined."""
    return pool_means([[row[measure] for row in rows if row["model"] == model] for rows in pools])


def inversions(setting: str, found: Likeness, level: float) -> list[InversionRow]:
    """Return one row an arm × model: how like reconstructions are to the images sought, means over pools."""
    rows = []
    for arm, pools in found.items():
        for model in (OWN, TWIN, START) if arm == NONE else (OWN, TWIN):
            own = [row for pool in pools for row in pool if row["model"] == model]
            measured = {name: interval(values_of(pools, model, name), level, WITHIN[name]) for name in MEASURES}
            confidence = sum(row["confidence"] for row in own) / len(own)
            rows.append(
                InversionRow(setting=setting, arm=arm, images=len(own), model=model, confidence=confidence, **measured)
            )
    return rows


def inversion_gains(setting: str, found: Likeness, controls: Mapping[str, str], level: float) -> list[InversionGainRow]:
    """Return paired differences by pool: own model minus the twin's, and minus the start of the search; the own model
    behind an arm minus without, and minus that behind its control in ``controls`` (arm → removal at random).

    Holm's correction is over the arms of one comparison and measure.
    """
    rows = []
    for arm, pools in found.items():
        for measure in JUDGED:
            own = values_of(pools, OWN, measure)
            others = {TWIN: values_of(pools, TWIN, measure)}
            if arm != NONE:
                others[NONE] = values_of(found[NONE], OWN, measure)
            else:
                others[START] = values_of(found[NONE], START, measure)
            if controls.get(arm) in found:
                others[AGAINST[0]] = values_of(found[controls[arm]], OWN, measure)
            for against, values in others.items():
                difference, p = paired(own, values, level)
                rows.append(
                    InversionGainRow(
                        setting=setting, arm=arm, against=against, measure=measure, difference=difference, p=p
                    )
                )
    return corrected(rows, ("against", "measure"))


def inversion_pictures(setting: Setting, store: Store, data: Dataset) -> list[InversionPicture]:
    """Return the most exposed image of a few pools, its class mean, and what each arm's models give, as PNGs."""
    rows: dict[int, InversionPicture] = {}
    for job in setting.of("invert"):
        if job.unit >= PICTURED:
            continue
        artefact = store.get(job.stage, job.key)
        if not json.loads(artefact.read(LIKENESS))["rows"]:
            continue  # the arm's training diverged
        arrays = unpack_arrays(artefact.read(IMAGES))
        shown = {name: picture(arrays[name][0, 0], data) for name in ("image", "class_mean", OWN, TWIN)}
        if job.unit not in rows:
            first = json.loads(artefact.read(LIKENESS))["rows"][0]
            rows[job.unit] = InversionPicture(
                setting=setting.name,
                pool=job.unit,
                target=first["target"],
                point_id=first["point_id"],
                label=first["label"],
                image=shown["image"],
                class_mean=shown["class_mean"],
                arms=(),
            )
        pair = PicturedArm(arm=job.label, own=shown[OWN], twin=shown[TWIN])
        rows[job.unit] = replace(rows[job.unit], arms=(*rows[job.unit].arms, pair))
    return list(rows.values())


def picture(image: NDArray[np.float32], data: Dataset) -> str | None:
    """Return an image (C, H, W) in the data's range as a PNG in a ``data:`` address; None for one that is not there."""
    if np.isnan(image).any() or image.shape[0] not in (1, 3):
        return None
    low, high = range_of(data)
    step = -(-max(image.shape[1:]) // MOST_PIXELS)
    return thumbnail((image[:, ::step, ::step] - low) / (high - low))


def inversion_warnings(found: Likeness) -> list[str]:
    """Return warnings: searches that found nothing, and images whose class one of the halves does not have."""
    rows = [row for pool in found.get(NONE, ()) for row in pool if row["model"] == OWN]
    lines = []
    every = [row for pools in found.values() for pool in pools for row in pool]
    searched = [row["confidence"] for row in every if row["model"] != START]
    if failed := sum(confidence < FOUND for confidence in searched):
        lines.append(
            f"inversion: in {failed} of {len(searched)} searches no image was found of which the model is surer than "
            f"{FOUND:g}; they count as they are. Raise audit.inversion.steps or starts, or lower tv"
        )
    if unknown := sum(row["same_class_twin"] == 0 for row in rows):
        lines.append(
            f"inversion: of {len(rows)} images {unknown} {'is' if unknown == 1 else 'are'} of a class that the twin "
            "has no image of; there own minus twin also shows which model knows the class"
        )
    if alone := sum(row["same_class"] == 0 for row in rows):
        lines.append(
            f"inversion: {alone} of {len(rows)} images "
            f"{'is the only one of its' if alone == 1 else 'are the only ones of their'} class in the target's half, "
            "so that likeness to the class mean is not told"
        )
    return lines
