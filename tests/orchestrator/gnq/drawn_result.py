"""A plausible finished GNQ run on disk, made from drawn confidences: result.json, scores.parquet, plan.yaml.

A model is surer of the points it trains on, the more so the harder they are; so removing hard points lowers what is
given away, and rankings differ by how well they see how hard a point is.
"""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from audits.gnq.answers import compared
from audits.gnq.onion import exposure
from audits.gnq.removal import GROUPS, ONE_SIDED, two_sided_auc
from audits.signals.likelihood_ratio import log_likelihood_ratio
from audits.statistics.null import holm
from audits.statistics.roc import auc
from orchestrator.gnq.result.judging import judge
from orchestrator.gnq.result.rows import GnqResult
from orchestrator.report.pictures import thumbnail
from orchestrator.report.result import run_of
from tests.orchestrator.gnq.drawn_pools import HALF, SHADOWS, SIGNAL, Answers, Pool, drawn_pool
from tests.orchestrator.gnq.drawn_sums import bin_rows, comparison_rows, correlation_rows, estimate, gain_rows

CONTROLS = ("loss_log", "gradient_norm_log", "random")
NONE = {
    "arm": "none",
    "method": "none",
    "ranking": None,
    "share": None,
    "strength": None,
    "epsilon": None,
    "delta": None,
}
ARMS = {
    "none": NONE,
    "gnq_log-0.2": NONE | {"arm": "gnq_log-0.2", "method": "remove", "ranking": "gnq_log", "share": 0.2},
    "random-0.2": NONE | {"arm": "random-0.2", "method": "remove", "ranking": "random", "share": 0.2},
    "loss_log-0.2": NONE | {"arm": "loss_log-0.2", "method": "remove", "ranking": "loss_log", "share": 0.2},
    "dp-8": NONE | {"arm": "dp-8", "method": "dp_sgd", "epsilon": 8.0, "delta": 1e-4},
    "noise-gnq_log-0.2-1": NONE
    | {"arm": "noise-gnq_log-0.2-1", "method": "noise", "ranking": "gnq_log", "share": 0.2, "strength": 1.0},
}
ACCURACY = {"none": 0.81, "remove": 0.80, "dp_sgd": 0.74, "noise": 0.80}
PLAN = {
    "audit": {"kind": "gnq", "modes": ["ridge", "diagonal"], "ridge": 0.001, "checkpoints": 5, "bins": 5, "onion": 4},
    "data": {"name": "fashion14", "root": None},
    "split": {"pools": 4, "train_size": HALF, "shadows": SHADOWS, "test": 200, "classes": None},
    "model": {"name": "mlp", "settings": {"hidden": [128, 128], "dropout": 0.0}},
    "recipe": {"optimizer": "adamw", "epochs": 12},
    "defences": [{"method": "remove", "ranking": "gnq_log", "share": 0.2}],
    "seed": 0,
}


def attack_scores(asked: np.ndarray, shadows: Answers | None, group: str) -> np.ndarray:
    """Return (2, 2n): the confidence, or its likelihood ratio by what shadows look like inside and outside."""
    if shadows is None:
        return asked
    values = np.stack([shadows.confidence] * 2)
    sides = np.stack(compared(shadows.half, shadows.kept, group))
    return np.stack([log_likelihood_ratio(row, values, sides) for row in asked])


def areas(scores: np.ndarray, members: np.ndarray, others: np.ndarray) -> list[float]:
    """Return the AUC within each target, NaN where a side is empty."""
    both = zip(scores, members, others, strict=True)
    return [auc(row[m | o], m[m | o]) if m.any() and o.any() else math.nan for row, m, o in both]


def cells(pools: list[Pool], arms: list[dict]) -> dict[tuple, np.ndarray]:
    """Return (arm, group, attack, shadows, moment) → AUC (pools, 2)."""
    found: dict[tuple, list] = {}
    for pool in pools:
        for arm in (arm["arm"] for arm in arms):
            own, base = pool.targets[arm], pool.targets["none"]
            asked = {"after": own.confidence, "before": base.confidence, "null": pool.null}
            ways = {"none": None, "naive": pool.shadows["none"], "adaptive": pool.shadows[arm]}
            for group in GROUPS:
                for moment, confidence in asked.items():
                    for shadows, models in ways.items():
                        told = shadows == "adaptive" and (arm == "none" or group in ONE_SIDED or moment == "before")
                        if told or (moment == "before" and arm == "none"):
                            continue
                        taught = group if shadows == "adaptive" else "contributors"
                        scores = attack_scores(confidence, models, taught)
                        place = (arm, group, "loss" if models is None else "lira", shadows, moment)
                        found.setdefault(place, []).append(areas(scores, *compared(own.half, own.kept, group)))
    return {place: np.array(values) for place, values in found.items()}


def table_rows(found: dict[tuple, np.ndarray]) -> list[dict]:
    """Return the rows of ``table``."""
    rows = []
    for (arm, group, attack, shadows, moment), values in found.items():
        turned = group.startswith("removed") and len(values) > 1 and not np.isnan(values).any()
        row = {"arm": arm, "group": group, "attack": attack, "shadows": shadows, "moment": moment}
        row |= {"access": "posteriors", "pools": len(values), "targets": values.size, **estimate("auc", values.mean(1))}
        rows.append(row | estimate("two_sided", two_sided_auc(values).mean(1) if turned else [math.nan]))
    return rows


def onion_row(pools: list[Pool], arm: str, models: int = 2) -> dict | None:
    """Return shares of fully exposed kept points before and after, by shadows; None for the undefended arm."""
    if arm == "none":
        return None
    each = []
    for pool in pools:
        sides = [(own.confidence, own.kept, ~own.half) for own in (pool.shadows["none"], pool.shadows[arm])]
        shares = np.stack([exposure(values, inside, outside, models) for values, inside, outside in sides])
        each.append(np.nanmean(shares[:, pool.targets[arm].kept.any(0)], axis=1))
    before, after = np.array(each).T
    floor = 1 / math.comb(2 * models, models)
    return {"points": HALF, "before": float(before.mean()), **estimate("after", after), "floor": floor}


def arm_rows(pools: list[Pool], arms: list[dict], found: dict[tuple, np.ndarray], seed: int) -> list[dict]:
    """Return the rows of ``arms``, each with its headline: contributors, adaptive shadows if there are any."""
    rng = np.random.default_rng(seed)
    rows = []
    for arm in arms:
        shadows = "naive" if arm["arm"] == "none" else "adaptive"
        ways = (("loss", "none"), ("lira", shadows))
        means = {way: found[arm["arm"], "contributors", *way, "after"].mean(1) for way in ways}
        attack, _ = best = max(means, key=lambda way: means[way].mean())
        spread = estimate("", means[best])
        headline = {"attack": attack, "auc": spread[""], "low": spread["_low"], "high": spread["_high"]}
        accuracy = ACCURACY[arm["method"]] + 0.01 * rng.normal(size=len(pools))
        fields = {"trained_on": HALF * (1 - (arm["share"] or 0)), "steps": 40, "last_batch": 12, "train_accuracy": 0.9}
        fields |= {**estimate("test_accuracy", accuracy), "headline": headline, "onion": onion_row(pools, arm["arm"])}
        rows.append(arm | fields)
    return rows


def point_rows(pools: list[Pool]) -> list[dict]:
    """Return the 24 points of highest score over all targets."""
    rows = []
    for place, pool in enumerate(pools):
        own = pool.targets["none"]
        for twin, half in enumerate(own.half):
            score = np.where(half, pool.scores["gnq_log"][twin], -np.inf)
            for rank, point in enumerate(np.argsort(-score)[:24], start=1):
                log = float(np.exp(score[point]))
                row = {"pool": place, "point_id": 1000 * place + int(point), "label": "ankle boot", "rank": rank}
                row |= {"of": HALF, "gnq_log": log, "gnq_final": 4.0**log - 1, "bits": min(1.0, log), "diagonal": log}
                rows.append(row | {"squared_norm": 30 * log, "loss": log / 3, "loss_gap": log / 2})
    return sorted(rows, key=lambda row: -row["gnq_log"])[:24]


def trace_rows(pools: list[Pool]) -> list[dict]:
    """Return quantiles over points of what was watched, falling along training."""
    steps = [0, 10, 20, 30, 40]
    hard = np.exp(np.concatenate([pool.scores["gnq_log"].ravel() for pool in pools]))
    rows = []
    for score, size in (("gnq", 0.5), ("loss", 2.0), ("squared_norm", 40.0)):
        seen = np.quantile(np.stack([size * hard / (1 + step / 10) for step in steps]), [0.1, 0.5, 0.9], axis=1)
        rows.append(
            {"steps": steps, "score": score, **dict(zip(("low", "median", "high"), seen.tolist(), strict=True))}
        )
    return rows


def score_columns(pools: list[Pool], arms: list[dict]) -> dict[str, np.ndarray]:
    """Return the columns of scores.parquet, but for the setting."""
    parts: list[dict] = []
    for place, pool in enumerate(pools):
        for arm in (arm["arm"] for arm in arms):
            own = pool.targets[arm]
            for twin in (0, 1):
                part = {"pool": np.full(2 * HALF, place, np.int32), "twin": np.full(2 * HALF, twin, np.int32)}
                part |= {"arm": np.full(2 * HALF, arm, object), "point_id": 1000 * place + np.arange(2 * HALF)}
                part |= {"label": np.zeros(2 * HALF, np.int32), "member": own.half[twin], "kept": own.kept[twin]}
                part |= {"loss": own.confidence[twin]}
                for name, shadows in (("lira_naive", pool.shadows["none"]), ("lira_adaptive", pool.shadows[arm])):
                    part[name] = attack_scores(own.confidence, shadows, "contributors")[twin]
                parts.append(part)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def inversion_fields(pools: int, arms: list[dict], seed: int) -> dict[str, list[dict]]:
    """Return rows of model inversion: own models come closer than twins, removal by GNQ undoes it; grey pictures."""
    rng = np.random.default_rng(seed)
    likeness = {"ssim_image": 0.4, "ssim_class_mean": 0.6, "mse_image": 0.05, "mse_class_mean": 0.02}
    found: list[dict] = []
    values: dict[tuple, np.ndarray] = {}
    for name in (arm["arm"] for arm in arms):
        for model in ("own", "twin"):
            shift = 0.2 if model == "own" and not name.startswith("gnq") else 0.0
            each = {part: mean + 0.004 * rng.normal(size=pools) for part, mean in likeness.items()}
            each["ssim_image"] += shift
            values |= {(name, model, part): own for part, own in each.items()}
            row = {"arm": name, "images": 2 * pools, "model": model, "confidence": 0.97}
            found.append(row | {key: value for part in likeness for key, value in estimate(part, each[part]).items()})
    gains: list[dict] = []
    for measure in ("ssim_image", "mse_image"):
        for name in (arm["arm"] for arm in arms):
            for against, other in (("twin", (name, "twin")), ("none", ("none", "own"))):
                if (name, against) != ("none", "none"):
                    gained = estimate("", values[name, "own", measure] - values[*other, measure])
                    row = {"arm": name, "against": against, "measure": measure, "difference": gained[""]}
                    p = None if pools == 1 else 0.001
                    gains.append(row | {"low": gained["_low"], "high": gained["_high"], "p": p, "p_holm": p})
    shown = thumbnail(np.full((11, 12), 0.5))
    looks = [{"arm": arm["arm"], "own": shown, "twin": shown} for arm in arms]
    point = {"pool": 0, "target": 0, "point_id": 7, "label": "s7", "image": shown, "class_mean": None, "arms": looks}
    return {"inversions": found, "inversion_gains": gains, "inversion_pictures": [point]}


def write_gnq_run(
    out: Path,
    settings: dict[str, dict] | None = None,
    *,
    arms: tuple[str, ...] = tuple(ARMS),
    pools: int = 4,
    inverted: bool = False,
) -> dict:
    """Write the three files under ``out`` and return the result.

    ``settings``: name → dotted changes, of which ``signal`` says how much models give away; ``arms``: names of ARMS;
    ``inverted``: with what model inversion found.
    """
    chosen = [ARMS[name] for name in arms]
    entries, tables = [], []
    rows: dict[str, list] = {}
    for place, (setting, overrides) in enumerate((settings or {"base": {}}).items()):
        drawn = [drawn_pool(chosen, overrides.get("signal", SIGNAL), place, number) for number in range(pools)]
        found = cells(drawn, chosen)
        watched = [(pool.scores, pool.shadows["none"], pool.targets["none"]) for pool in drawn]
        made = {"arms": arm_rows(drawn, chosen, found, place), "table": table_rows(found)}
        made |= {
            "comparisons": comparison_rows(found, made["arms"]),
            "correlations": correlation_rows(watched, CONTROLS),
        }
        made |= {"gains": gain_rows(watched, CONTROLS), "bins": bin_rows(watched), "points": point_rows(drawn)}
        made["traces"] = trace_rows(drawn)
        made |= inversion_fields(pools, chosen, place) if inverted else {}
        for field, own in made.items():
            rows.setdefault(field, []).extend({"setting": setting, **row} for row in own)
        columns = score_columns(drawn, chosen)
        tables.append({"setting": np.full(len(columns["pool"]), setting, object), **columns})
        changes = {path: value for path, value in overrides.items() if path != "signal"}
        entries.append({"setting": setting, "overrides": changes})
    for family in (rows["comparisons"], rows["gains"]):
        known = [row for row in family if row["p"] is not None]
        for row, corrected in zip(known, holm([row["p"] for row in known]), strict=True):
            row["p_holm"] = float(corrected)
    result = {
        "schema": "orch.result/2",
        "name": "gnq-audit" if len(entries) == 1 else "gnq-sweep",
        "kind": "gnq",
        "makes": "audit",
        "seed": 0,
        "seconds": 265.3,
        "level": 0.95,
        "plan": copy.deepcopy(PLAN),
        "plan_hash": "0123456789abcdef",
        "versions": {"orch-audit": "0.1.0", "torch": "2.15.0"},
        "population": {"models": 96, "reused": 0, "trained": 96},
        "warnings": ["the last batch of gnq_log-0.2 has 4 points"],
        "notes": ["delta is 0.0001"],
        "settings": entries,
        **rows,
    }
    result = judge(run_of(json.loads(json.dumps(result)), GnqResult)).document()
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps(result, indent=1))
    (out / "plan.yaml").write_text(yaml.safe_dump(PLAN, sort_keys=False))
    whole = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    pq.write_table(pa.table(whole), out / "scores.parquet")
    return result
