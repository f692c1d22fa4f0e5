"""Rows of a result that are made from stored details: heat maps, the paper's rules, query budgets and radii."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.apollo.attacks.paper_rule import THRESHOLDS, balanced_accuracies
from audits.statistics.null import null_band
from audits.statistics.radii import EXPECTED, OPEN, REFUTED, answers
from audits.statistics.summary import summarise
from orchestrator.apollo.result.rows import BudgetRow, HeatMap, PaperRuleRow, RadiusPoints, RadiusRow, RadiusSide
from orchestrator.apollo.score_table import REPETITION
from orchestrator.apollo.stages.radii import RADII, WAYS
from orchestrator.apollo.stages.scoring import DETAILS
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.judgement.estimate import Estimate

if TYPE_CHECKING:
    from audits.arrays import Floats
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

Details = Mapping[str, Sequence[Mapping[str, Any]]]
PAPER_RULES = ("apollo_under", "apollo_over")
"""The paper's rules by attack, in the order of ``paper_rule.said``."""
REFERENCES = {"own_start": ("own_", "own_distance"), "retrain": ("", "retrained_distance")}
"""Models that Δ_r is measured to: how their arrays are called in what the stage radii stores."""
SAME = 2  # draws of permutations and bootstrap where only intervals over targets are read


def details_of(settings: Sequence[Setting], store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the stored details of each unlearning method, one entry per setting and shadow set."""
    found: dict[str, list[dict[str, Any]]] = {}
    for place, setting in enumerate(settings):
        for job in setting.of("score"):
            part = unpack_arrays(store.get("score", job.key).read(DETAILS))
            found.setdefault(job.label, []).append(part | {"target": part["target"] + REPETITION * place})
    return found


def heat_maps(details: Details) -> dict[str, HeatMap]:
    """Return, for each method, TPR and FPR over pairs of UNDER and OVER radii (Apollo's Fig. 5)."""
    maps = {}
    for label, parts in walked(details).items():
        forget = sum(int(part["forgotten"].sum()) for part in parts)
        unseen = sum(int((~part["forgotten"]).sum()) for part in parts)
        maps[label] = HeatMap(
            under_radius=np.mean([part["heat.under_radius"] for part in parts], axis=0).tolist(),
            over_radius=np.mean([part["heat.over_radius"] for part in parts], axis=0).tolist(),
            tpr=(np.sum([part["heat.forget"] for part in parts], axis=0) / forget).tolist(),
            fpr=(np.sum([part["heat.unseen"] for part in parts], axis=0) / unseen).tolist(),
        )
    return maps


def paper_rule(details: Details, draws: int, level: float, seed: int) -> list[PaperRuleRow]:
    """Return, for each method and each rule, the paper's best τ on the judged points and where chance would put it.

    ``curve``: balanced accuracy at each of the ``taus``; ``best``: its largest value, at ``best_tau``; ``null_low``,
    ``null_high``: where the largest value falls when forget and unseen are permuted within targets; ``p``: one-sided.
    """
    rows = []
    for label, parts in walked(details).items():
        both = np.concatenate([part["said"] for part in parts], axis=-1)
        forgotten = np.concatenate([part["forgotten"] for part in parts])
        target = np.concatenate([part["target"] for part in parts])
        for attack, said in zip(PAPER_RULES, both, strict=True):
            curve = balanced_accuracies(said, forgotten)
            band = null_band(
                lambda truth, said=said: float(balanced_accuracies(said, truth).max()),  # type: ignore[misc]  # a default binds the loop's value
                forgotten,
                target,
                draws=min(draws, 500),
                level=level,
                seed=seed,
            )
            rows.append(
                PaperRuleRow(
                    unlearner=label,
                    attack=attack,
                    taus=rounded(THRESHOLDS),
                    curve=rounded(curve),
                    best_tau=float(rounded(THRESHOLDS)[curve.argmax()]),
                    best=band.value,
                    null_low=band.low,
                    null_high=band.high,
                    p=band.p,
                )
            )
    return rows


def rounded(values: Floats) -> tuple[float, ...]:
    """Return numbers with six decimals, as a curve in result.json needs no more."""
    return tuple(float(value) for value in np.round(values, 6))


def walked(details: Details) -> Details:
    """Return the details of methods along whose targets Apollo walked."""
    return {label: parts for label, parts in details.items() if "said" in parts[0]}


def budget_rows(details: Details, rate: float, level: float) -> list[BudgetRow]:
    """Return, for each method × attack × budget, AUC and TPR at the promised ``rate`` with their intervals.

    ``queries``: labels of the target per candidate. The rows of the full budget are those of the main table.
    """
    return [
        BudgetRow(unlearner=label, attack=attack, queries=int(queries), **at_budget(parts, attack, place, rate, level))
        for label, parts in details.items()
        for attack in sorted(set.intersection(*map(budgeted, parts)))
        for place, queries in enumerate(parts[0][f"budget.{attack}.queries"])
    ]


def budgeted(part: Mapping[str, Any]) -> set[str]:
    """Return the attacks of which a part has budgets: those that failed have none."""
    return {name.split(".")[1] for name in part if name.startswith("budget.")}


def at_budget(parts: Sequence[Mapping[str, Any]], attack: str, place: int, rate: float, level: float) -> dict[str, Any]:
    """Return AUC and TPR of one method × attack at the budget in ``place`` of the ladder, as the table has them."""
    forgotten, target = (np.concatenate([part[name] for part in parts]) for name in ("forgotten", "target"))
    score, decision = (
        np.concatenate([part[f"budget.{attack}.{name}"][place] for part in parts]) for name in ("score", "decision")
    )
    count = len(score)
    columns = {
        **{name: np.full(count, attack) for name in ("setting", "unlearner", "attack", "access")},
        "target": target,
        "point_id": np.arange(count),
        "group": np.where(forgotten, "forget", "unseen"),
        "score": score,
        "queries": np.zeros(count),
        f"decision_{rate:g}": decision,
    }
    (row,) = summarise(columns, [rate], level=level, bootstrap=SAME, permutations=SAME)
    return {name: Estimate(*(float(row[f"{name}{end}"]) for end in Estimate.SUFFIXES)) for name in ("auc", "tpr")}


def radius_rows(settings: Sequence[Setting], store: Store) -> list[RadiusRow]:
    """Return, for each method and each reference of Δ_r, estimated intervals of radii and what labels say of them.

    ``under``, ``over``: how many of the ``points`` have an interval and its median ends, how many intervals the labels
    of the unlearned model bear out, refute or leave open (``radii.answers``), how many labels flip (``at_x``: of which
    before the first step) and at which median radius, and how many are ``early``: nearer than the margin of the
    unlearned model allows by the estimate. ``candidates``: columns of single points, null for none.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for place, setting in enumerate(settings):
        for job in setting.of("radii"):
            part = unpack_arrays(store.get("radii", job.key).read(RADII))
            found.setdefault(job.label, []).append(part | {"target": part["target"] + REPETITION * place})
    joined = {
        label: {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for label, parts in found.items()
    }
    return [radius_row(label, whole, reference) for label, whole in joined.items() for reference in REFERENCES]


def radius_row(label: str, whole: Mapping[str, Any], reference: str) -> RadiusRow:
    """Return the row of one method from its arrays (stage radii), with Δ_r to one of ``REFERENCES``."""
    prefix, needed = REFERENCES[reference]
    early = (whole["margin"] - whole["lipschitz_parameters"] * whole["unlearned_distance"]) / whole["lipschitz_input"]
    spans = {way: whole[f"{prefix}{way}"] for way in WAYS}
    told = {way: answers(way, spans[way], whole[f"flip_{way}"], whole[f"{prefix}asked_{way}"]) for way in WAYS}
    under, over = (radius_summary(spans[way], whole[f"flip_{way}"], early, told[way]) for way in WAYS)
    return RadiusRow(
        unlearner=label,
        reference=reference,
        points=len(whole["target"]),
        under=under,
        over=over,
        median_margin=float(np.median(whole["margin"])),
        median_lipschitz_input=float(np.median(whole["lipschitz_input"])),
        median_lipschitz_parameters=float(np.median(whole["lipschitz_parameters"])),
        median_unlearned_distance=float(np.median(whole["unlearned_distance"])),
        median_retrained_distance=float(np.median(whole[needed])),
        candidates=RadiusPoints(
            target=tuple(whole["target"].tolist()),
            point_id=tuple(whole["point_id"].tolist()),
            under=tuple((plain(low), plain(high)) for low, high in spans["under"]),
            over=tuple((plain(low), plain(high)) for low, high in spans["over"]),
            flip_under=tuple(map(plain, whole["flip_under"])),
            flip_over=tuple(map(plain, whole["flip_over"])),
            answer_under=tuple(answer or None for answer in told["under"].tolist()),
            answer_over=tuple(answer or None for answer in told["over"].tolist()),
        ),
    )


def radius_summary(span: Any, flip: Any, early: Any, told: Any) -> RadiusSide:
    """Return counts and medians of intervals (K, 2), flips and answers (K,); medians None where there is nothing."""
    real, flipped = np.isfinite(span).all(axis=1), np.isfinite(flip)
    low, high = (plain(np.median(span[real, end])) if real.any() else None for end in (0, 1))
    return RadiusSide(
        intervals=int(real.sum()),
        low=low,
        high=high,
        expected=int((told == EXPECTED).sum()),
        refuted=int((told == REFUTED).sum()),
        open=int((told == OPEN).sum()),
        flips=int(flipped.sum()),
        at_x=int((flip == 0.0).sum()),
        flip=plain(np.median(flip[flipped])) if flipped.any() else None,
        early=int((flipped & (flip < early)).sum()),
    )


def plain(value: float) -> float | None:
    """Return a radius with six significant digits, None for NaN: result.json holds numbers that any reader knows."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
