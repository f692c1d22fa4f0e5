"""Rows that are made from what the stage score stores beside scores: budgets, bounds on ε, exposure; and fits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.mia.attacks import MIA_ATTACKS
from audits.statistics.discoveries import discovery_rows, family_q_values
from audits.statistics.epsilon_bound import epsilon_bound
from audits.statistics.intervals import clustered_rate
from orchestrator.engine.given import POINTS
from orchestrator.engine.run.models import METRICS
from orchestrator.judgement.estimate import Estimate
from orchestrator.mia.result.areas import Columns, estimate_over, judged_points, rows_where
from orchestrator.mia.result.rows import DiscoveryRow, EpsilonRow, ExposedPoint, FitRow, ShadowRow
from orchestrator.mia.stages.scoring import DETAILS, NULL, TARGET
from orchestrator.report.rows import read_rows

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store
    from orchestrator.mia.plan import MiaPlan

Details = Sequence[Mapping[str, Any]]
MOST_LISTED = 100
"""Exposed points of a setting that result.json lists; scores.parquet has the p-values of all."""


def details_of(setting: Setting, store: Store) -> list[dict[str, Any]]:
    """Return what the stage score stored beside scores, pool by pool."""
    return [json.loads(store.get("score", job.key).read(DETAILS)) for job in setting.of("score")]


def known_of(details: Mapping[str, Details]) -> dict[tuple[str, str], int]:
    """Return (setting, attack) → how many known non-members set its thresholds, the fewest of any pool."""
    found: dict[tuple[str, str], int] = {}
    for setting, pools in details.items():
        for attack, count in (each for pool in pools for each in pool["known"].items()):
            found[setting, attack] = min(count, found.get((setting, attack), count))
    return found


def shadow_rows(setting: str, details: Details, plan: MiaPlan) -> list[ShadowRow]:
    """Return the power of each attack with some of the shadows, at the first promised rate."""
    rate, level, rows = plan.audit.fpr[0], plan.audit.level, []
    every = [row for pool in details for row in pool["budget"]]
    for attack, shadows in dict.fromkeys((row["attack"], row["shadows"]) for row in every):
        pools = [
            [row for row in pool["budget"] if (row["attack"], row["shadows"]) == (attack, shadows)] for pool in details
        ]
        own = [rows_here for rows_here in pools if rows_here]
        rates = {}
        for side in ("inside", "outside"):
            hits = [sum(call[side] for row in pool for call in row["calls"] if call["fpr"] == rate) for pool in own]
            sizes = [sum(row[side] for row in pool) for pool in own]
            ends = clustered_rate(hits, sizes, level) if plan.target is None else (None, None)
            rates[side] = Estimate(sum(hits) / sum(sizes), *ends)
        rows.append(
            ShadowRow(
                setting=setting,
                attack=attack,
                shadows=shadows,
                promised_fpr=rate,
                auc=estimate_over([float(np.mean([row["auc"] for row in pool])) for pool in own], level),
                tpr=rates["inside"],
                found_fpr=rates["outside"],
            )
        )
    return rows


def epsilon_rows(setting: str, details: Details, plan: MiaPlan) -> list[EpsilonRow]:
    """Return what the guesses about pairs rule out: pools share no point, so that their coins are counted together.

    A training that is (ε, δ)-private for each model is so for all pools at once, since a point is in one of them.
    """
    every = [row for pool in details for row in pool["guesses"]]
    rows = []
    for attack, share in dict.fromkeys((row["attack"], row["share"]) for row in every):
        told = {}
        for role in (TARGET, NULL):
            own = [row for row in every if (row["attack"], row["share"], row["role"]) == (attack, share, role)]
            right, guesses, pairs = (sum(row[name] for row in own) for name in ("right", "guesses", "pairs"))
            bound = epsilon_bound(right, guesses, pairs, plan.audit.delta, plan.audit.level) if own else None
            told[role] = right, guesses, pairs, bound
        right, guesses, pairs, epsilon = told[TARGET]
        rows.append(
            EpsilonRow(
                setting=setting,
                attack=attack,
                access=MIA_ATTACKS[attack].access,
                share=share,
                pairs=pairs,
                guesses=guesses,
                right=right,
                delta=plan.audit.delta,
                epsilon=float(epsilon or 0.0),
                null_right=told[NULL][0] if told[NULL][3] is not None else None,
                null_epsilon=told[NULL][3],
            )
        )
    return rows


def discovered(columns: Columns, plan: MiaPlan) -> list[DiscoveryRow]:
    """Return how many single points each attack finds at the allowed share of false ones; intervals over pools."""
    found = with_q(columns)
    found["target"] = found["pool"]
    rows = discovery_rows(found, plan.audit.fdr, plan.audit.level)
    return list(read_rows(DiscoveryRow, [{k: v for k, v in row.items() if k != "unlearner"} for row in rows], "rows"))


def with_q(columns: Columns) -> dict[str, Any]:
    """Return the rows about targets and ordinary points with their q-values."""
    found = judged_points(columns)
    found["q_value"] = family_q_values(found)
    return found


def exposed(columns: Columns, setting: Setting, details: Details) -> list[ExposedPoint]:
    """Return the members of which the judge is surest in a setting, by rising p-value, whether they are discoveries.

    Of equal p-values those come first that more shadows show as well.
    """
    plan: MiaPlan = setting.plan  # type: ignore[assignment]  # plans of this kind are
    share = {
        int(point): value
        for told in details
        if told["recognised"]
        for point, value in zip(told["recognised"]["points"], told["recognised"]["share"], strict=True)
    }
    found = with_q(rows_where(columns, (columns["setting"] == setting.name) & (columns["attack"] == plan.judge)))
    rows = np.flatnonzero(found["member"])
    recognised = np.array([share.get(int(point), 0.0) for point in found["point_id"][rows]])
    order = rows[np.lexsort((found["point_id"][rows], -recognised, found["p_value"][rows]))]
    return [
        ExposedPoint(
            setting=setting.name,
            target=int(found["target"][row]),
            point_id=int(found["point_id"][row]),
            label=int(found["label"][row]),
            score=float(found["score"][row]),
            p=float(found["p_value"][row]),
            q=float(found["q_value"][row]),
            recognised=share.get(int(found["point_id"][row])),
        )
        for row in order[:MOST_LISTED]
    ]


def fit_rows(setting: Setting, store: Store) -> list[FitRow]:
    """Return mean accuracies of the targets and of the shadows of a setting."""
    found: dict[str, list[dict[str, float]]] = {}
    for job in setting.of("given", "train"):
        if job.member != POINTS:
            group = "target" if job.stage == "given" else job.member.split("-")[1]
            found.setdefault(group, []).append(json.loads(store.get(job.stage, job.key).read(METRICS)))
    rows = []
    for group, models in found.items():
        train, test = (mean_of(models, name) for name in ("train_accuracy", "test_accuracy"))
        rows.append(
            FitRow(
                setting=setting.name,
                group=group,
                models=len(models),
                train_accuracy=train,
                test_accuracy=test,
                gap=train - test,
            )
        )
    return rows


def mean_of(models: Sequence[Mapping[str, float]], name: str) -> float:
    """Return the mean of what was measured of models."""
    return float(np.mean([model[name] for model in models]))
