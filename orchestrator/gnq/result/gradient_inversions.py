"""Rows about gradient inversion: what comes back, by checkpoint, batch size and method, and what foretells it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from audits.gnq.gradient_inversion.settings import ANALYTIC
from audits.statistics.rank_correlation import spearman
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.gnq.result.gather import CORRELATION, Found, corrected, interval, paired, pool_means
from orchestrator.gnq.result.gradient_rows import (
    GradientInversionGainRow,
    GradientInversionPicture,
    GradientInversionRow,
    PicturedSearch,
    RecoveryCorrelation,
    RecoveryGainRow,
)
from orchestrator.gnq.result.inversions import PICTURED, picture
from orchestrator.gnq.stages.matching import CLASS_MEAN, FOUND, OTHER, OWN, PICTURES, SCORES, picture_name

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store


class Search(NamedTuple):
    """One way to search: at a checkpoint, from gradients of ``batch`` points, by a method."""

    step: int
    batch: int
    method: str


Recovered = Mapping[int, Sequence[Sequence[Found]]]
"""Steps taken before a checkpoint → pool → what stage match left of each target."""

SIGNS = {"ssim": 1.0, "mse": -1.0}
"""Measures of likeness, and whether a larger value is closer."""
SHOWN_POINTS = 2
"""Points of the first target of a pool that are shown: the first of its sample."""


def read_recovered(setting: Setting, store: Store) -> Recovered:
    """Return what stage match left, checkpoint by checkpoint and pool by pool; nothing for a plan without it."""
    found: dict[int, list[list[Found]]] = {}
    for job in setting.of("match"):
        told = json.loads(store.get(job.stage, job.key).read(FOUND))["targets"]
        found.setdefault(job.document["step"], []).append(told)
    return found


def searches(found: Recovered) -> list[Search]:
    """Return every way in which was searched."""
    ways = []
    for step, pools in found.items():
        rows = (row for row in pools[0][0]["found"] if row["given"] == OWN)
        ways += [Search(step, row["batch"], row["method"]) for row in rows]
    return ways


def row_of(target: Found, way: Search, given: str) -> Found:
    """Return what one target's gradients gave; the class mean is the same however is searched."""
    return next(
        row
        for row in target["found"]
        if row["given"] == given and (given == CLASS_MEAN or (row["batch"], row["method"]) == way[1:])
    )


def likeness(found: Recovered, way: Search, given: str, measure: str) -> list[float | None]:
    """Return the mean of a measure over the targets and points of each pool."""
    pools = found[way.step]
    return pool_means([[float(np.mean(row_of(target, way, given)[measure])) for target in pool] for pool in pools])


def gradient_inversions(setting: str, found: Recovered, level: float) -> list[GradientInversionRow]:
    """Return how like what is found is to the points, by search and by what was given; means over pools."""
    rows = []
    for way in searches(found):
        for given in (OWN, OTHER, CLASS_MEAN):
            targets = [row_of(target, way, given) for pool in found[way.step] for target in pool]
            right = [row["right"] for row in targets if row.get("right") is not None]
            rows.append(
                GradientInversionRow(
                    setting=setting, **way._asdict(), given=given, points=sum(len(row["ssim"]) for row in targets),
                    labels_right=sum(right) / len(right) if right else None,
                    ssim=interval(likeness(found, way, given, "ssim"), level, CORRELATION),
                    mse=interval(likeness(found, way, given, "mse"), level, (0.0, math.inf)),
                )
            )  # fmt: skip
    return rows


def gradient_inversion_gains(setting: str, found: Recovered, level: float) -> list[GradientInversionGainRow]:
    """Return likeness by a point's own gradient minus that of its controls, paired by pool; Holm over searches."""
    rows = []
    for way in searches(found):
        for against in (OTHER, CLASS_MEAN):
            for name in SIGNS:
                own, other = (likeness(found, way, given, name) for given in (OWN, against))
                difference, p = paired(own, other, level)
                rows.append(
                    GradientInversionGainRow(
                        setting=setting, **way._asdict(), against=against, measure=name, difference=difference, p=p
                    )
                )
    return corrected(rows, ("against", "measure"))


def rank_correlation(target: Found, way: Search, given: str, score: str, measure: str) -> float | None:
    """Return Spearman's correlation of a score with closeness over one target's points; None where either is flat."""
    closeness = SIGNS[measure] * np.array(row_of(target, way, given)[measure])
    (value,) = spearman(np.array([target["scores"][score]]), closeness)
    return None if np.isnan(value) else float(value)


def foretold(found: Recovered, way: Search, given: str, score: str, measure: str) -> list[float | None]:
    """Return the mean over a pool's targets of the rank correlation of a score with closeness, pool by pool."""
    pools = found[way.step]
    return pool_means([[rank_correlation(target, way, given, score, measure) for target in pool] for pool in pools])


def ranked_searches(found: Recovered) -> list[Search]:
    """Return the searches that leave something to rank: method analytic gives every point back alike."""
    return [way for way in searches(found) if way.method != ANALYTIC]


def recovery_correlations(setting: str, found: Recovered, level: float) -> list[RecoveryCorrelation]:
    """Return which scores rank the points that come back best, and the same for the controls' images."""
    return [
        RecoveryCorrelation(
            setting=setting, **way._asdict(), given=given, score=score, outcome=measure, pools=len(found[way.step]),
            spearman=interval(foretold(found, way, given, score, measure), level, CORRELATION),
        )
        for way in ranked_searches(found)
        for given in (OWN, OTHER, CLASS_MEAN)
        for score in SCORES
        for measure in SIGNS
    ]  # fmt: skip


def recovery_gains(setting: str, found: Recovered, level: float) -> list[RecoveryGainRow]:
    """Return GNQ's correlation minus that of ‖g‖², of the loss, and of GNQ with the controls' images, by pool."""
    rows = []
    controls = [*((score, OWN) for score in SCORES[1:]), (SCORES[0], OTHER), (SCORES[0], CLASS_MEAN)]
    for way in ranked_searches(found):
        for score, given in controls:
            for measure in SIGNS:
                values = foretold(found, way, OWN, SCORES[0], measure)
                others = foretold(found, way, given, score, measure)
                if None in (*values, *others):
                    continue
                difference, p = paired(values, others, level)
                rows.append(
                    RecoveryGainRow(
                        setting=setting, **way._asdict(), score=SCORES[0], control=score, given=given,
                        outcome=measure, difference=difference, p=p,
                    )
                )  # fmt: skip
    return corrected(rows, ("control", "given", "outcome"))


def gradient_inversion_pictures(setting: Setting, store: Store, data: Dataset) -> list[GradientInversionPicture]:
    """Return the first points of a few pools' samples, the mean of their class, and what each search gives, as PNGs."""
    found: dict[tuple[int, int], GradientInversionPicture] = {}
    for job in setting.of("match"):
        if job.unit >= PICTURED:
            continue
        artefact = store.get(job.stage, job.key)
        target = json.loads(artefact.read(FOUND))["targets"][0]
        arrays = unpack_arrays(artefact.read(PICTURES))
        ways = [
            Search(job.document["step"], row["batch"], row["method"]) for row in target["found"] if row["given"] == OWN
        ]
        for place in range(min(SHOWN_POINTS, len(target["point_ids"]))):
            shown = [
                PicturedSearch(
                    **way._asdict(),
                    own=picture(arrays[picture_name(*way[1:], OWN)][0, place], data),
                    other=picture(arrays[picture_name(*way[1:], OTHER)][0, place], data),
                )
                for way in ways
            ]
            before = found.get((job.unit, place))
            found[job.unit, place] = GradientInversionPicture(
                setting=setting.name,
                pool=job.unit,
                target=target["target"],
                point_id=target["point_ids"][place],
                label=target["labels"][place],
                image=picture(arrays["image"][0, place], data),
                class_mean=picture(arrays[CLASS_MEAN][0, place], data),
                searches=(*(before.searches if before else ()), *shown),
            )
    return [found[place] for place in sorted(found)]


def gradient_inversion_warnings(found: Recovered) -> list[str]:
    """Return warnings: labels that gradients do not tell, and points that are the only ones of their class."""
    lines = []
    for step, pools in found.items():
        targets = [target for pool in pools for target in pool]
        shares = [row["right"] for target in targets for row in target["found"] if row.get("right") is not None]
        if shares and min(shares) < 1:
            lines.append(
                f"gradient inversion: after {step} steps the labels of {1 - sum(shares) / len(shares):.1%} of single "
                "points are not told by their gradients, which have rounded to 0; a wrong label was searched with"
            )
    first = next(iter(found.values()), [])
    if alone := sum(target["alone"] for pool in first for target in pool):
        lines.append(
            "gradient inversion: "
            + (
                "1 point is the only one of its class in its pool; its"
                if alone == 1
                else f"{alone} points are the only ones of their class in their pool; their"
            )
            + " control is noise of the gradient's norm"
        )
    return lines
