"""A plausible run on disk, made from drawn scores: result.json, scores.parquet and plan.yaml."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from scipy.special import ndtr, ndtri

from audits.statistics import discoveries, null, summary, three_way
from orchestrator.apollo.q_values import with_q_values
from orchestrator.apollo.result.judging import judge
from orchestrator.apollo.result.rows import ApolloResult
from orchestrator.report.result import run_of
from tests.cases.drawn import drawn

ATTACKS = {
    "apollo": ("labels", 12),
    "apollo_offline": ("labels", 12),
    "random_directions": ("labels", 12),
    "single_query": ("labels", 1),
    "label_gap": ("labels", 1),
    "lira": ("posteriors", 1),
    "loss_threshold": ("posteriors", 1),
}
AREA = {
    "identity": (0.70, 0.69, 0.66, 0.645, 0.59, 0.70, 0.66),
    "gradient_ascent": (0.675, 0.66, 0.63, 0.627, 0.57, 0.64, 0.60),
    "finetune": (0.69, 0.68, 0.65, 0.64, 0.58, 0.69, 0.65),
    "scrub": (0.677, 0.67, 0.65, 0.645, 0.595, 0.674, 0.64),
    "retrain": (0.5,) * 7,
}
ACCURACY = {"identity": 0.785, "gradient_ascent": 0.742, "finetune": 0.785, "scrub": 0.783, "retrain": 0.771}

PLAN = {
    "audit": {
        "kind": "apollo",
        "attacks": list(ATTACKS),
        "search": {
            "alpha": 1.0,
            "beta": 4.0,
            "epsilon": 0.1,
            "steps": 5,
            "learning_rate": 0.1,
            "shadows": None,
        },
        "fpr": [0.05],
        "level": 0.95,
        "bootstrap": 2000,
        "permutations": 2000,
    },
    "data": {"name": "fashion14", "root": None},
    "split": {
        "targets": 8,
        "train_size": 500,
        "forget": 0.1,
        "candidates": {"forget": 50, "unseen": 50},
        "shadows": 16,
        "offline_shadows": 8,
    },
    "model": {"name": "mlp", "settings": {"hidden": [128, 128]}},
    "recipe": {"optimizer": "adamw", "learning_rate": 0.002, "epochs": 60, "batch_size": 64},
    "unlearning": [
        {"method": "identity"},
        {"method": "gradient_ascent", "learning_rate": 0.04, "epochs": 10},
        {"method": "finetune", "learning_rate": 0.04},
        {"method": "scrub", "learning_rate": 0.002},
        {"method": "retrain"},
    ],
    "compute": {"workers": "auto", "device": "auto"},
    "tracking": {"uri": None, "experiment": "orch"},
    "seed": 0,
}
SWEPT = {
    "audit.search.beta": (1, 2, 8, 16),
    "audit.search.shadows": (4, 8),
    "audit.search.epsilon": (0.02, 0.05, 0.2),
    "audit.search.steps": (1, 3, 10),
}


def settings(sweep: bool) -> list[dict]:
    """Return the settings of an audit (base alone) or of a sweep over one value at a time."""
    found = [{"setting": "base", "overrides": {}}]
    if sweep:
        for path, values in SWEPT.items():
            short = path.rsplit(".", 1)[1]
            found += [{"setting": f"{short}={value}", "overrides": {path: value}} for value in values]
    return found


def score_table(names: list[str], targets: int, points: int, seed: int) -> pa.Table:
    """Return a scores table (contract columns) of binormal scores with the AUCs of AREA and calibrated decisions."""
    columns: dict[str, list] = {}
    for index, name in enumerate(names):
        rng, changes = np.random.default_rng(seed), np.random.default_rng(seed + index)
        for unlearner, areas in AREA.items():
            for (attack, (access, queries)), area in zip(ATTACKS.items(), areas, strict=True):
                searched = attack in ("apollo", "apollo_offline")  # only these depend on what a sweep changes
                gain = changes.normal(0.0, 0.02) if name != "base" and searched and unlearner != "retrain" else 0.0
                for target in range(targets):
                    true = np.clip(area + gain + (area != 0.5) * rng.normal(0.0, 0.02), 0.01, 0.99)
                    score = rng.normal(size=2 * points)
                    score[:points] += np.sqrt(2.0) * ndtri(true)
                    rows = {
                        "setting": [name] * 2 * points,
                        "unlearner": [unlearner] * 2 * points,
                        "attack": [attack] * 2 * points,
                        "access": [access] * 2 * points,
                        "target": [target] * 2 * points,
                        "shadow_set": [target] * 2 * points,
                        "point_id": list(range(target * 1000, target * 1000 + 2 * points)),
                        "group": ["forget"] * points + ["unseen"] * points,
                        "label": rng.integers(0, 10, 2 * points).tolist(),
                        "score": score.tolist(),
                        "queries": [queries] * 2 * points,
                        "decision_0.05": (score > 1.645).astype(float).tolist(),
                    }
                    for key, values in rows.items():
                        columns.setdefault(key, []).extend(values)
    types = {"target": pa.int32(), "shadow_set": pa.int32(), "label": pa.int32(), "queries": pa.int32()}
    return pa.table({key: pa.array(values, types.get(key)) for key, values in columns.items()})


def heat_maps() -> dict:
    """Return TPR and FPR over UNDER and OVER radii for each unlearner, as result.json holds them."""
    under, over = np.linspace(0.1, 0.5, 5), np.linspace(0.1, 0.5, 5)
    tpr = 0.2 + 0.5 * under[:, None] / (under[:, None] + over)
    return {
        name: {
            "under_radius": under.tolist(),
            "over_radius": over.tolist(),
            "tpr": tpr.tolist(),
            "fpr": (tpr * 0.8).tolist(),
        }
        for name in AREA
    }


def transfers() -> list[dict]:
    """Return settings of a sweep over architectures and over a share forgotten, which change the models."""
    pairs = [("mlp", "mlp"), ("mlp", "cnn"), ("cnn", "mlp"), ("cnn", "cnn")]
    found = [{"setting": f"{a}<-{b}", "overrides": {"model.name": a, "shadow_model.name": b}} for a, b in pairs]
    shares = [{"setting": f"forget={x:g}", "overrides": {"split.forget": x, "split.shadows": 32}} for x in (0.01, 0.5)]
    return [{"setting": "base", "overrides": {}}, *found, *shares]


def with_additions(scores: pa.Table, retained: int) -> pa.Table:
    """Return the table with p- and q-values, retained points and, for LiRA, log-odds of the three groups."""
    rows = scores.to_pylist()
    more = [
        row | {"group": "retained", "point_id": row["point_id"] + 500, "score": row["score"] + 0.5}
        for row in rows
        if row["group"] == "forget" and row["point_id"] % 1000 < retained
    ]
    rng = np.random.default_rng(1)
    for row in (*rows, *more):
        row["p_value"] = float(max(ndtr(-2.5 * row["score"]), 1e-3))  # clear enough for discoveries
        odds = rng.normal(size=3) + [1.5 * (row["group"] == name) for name in three_way.GROUPS]
        for name, value in zip(three_way.COLUMNS, odds, strict=True):
            row[name] = float(value) if row["attack"] == "lira" else None
    table = pa.Table.from_pylist([*rows, *more])
    for name in ("target", "shadow_set", "label", "queries"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.int32()))
    return with_q_values(table)


def left(made: Path, out: Path) -> dict:
    """Write the files of a run under ``out`` and return its result."""
    shutil.copytree(made, out, dirs_exist_ok=True)
    return json.loads((out / "result.json").read_text())


def write_whole_run(out: Path) -> dict:
    """Write a run that holds every optional field of result.json and return the result."""
    return left(drawn("whole run of apollo", make_whole_run, __file__), out)


def make_whole_run(out: Path) -> dict:
    """Write what ``write_whole_run`` does."""
    result = write_run(out, chosen=transfers(), targets=2, points=100)
    scores = with_additions(pq.read_table(out / "scores.parquet"), retained=40)
    pq.write_table(scores, out / "scores.parquet")
    arrays = {name: scores.column(name).to_numpy(zero_copy_only=False) for name in scores.column_names}
    budget = [
        {"unlearner": name, "attack": attack, "queries": queries}
        | {f"{field}{side}": 0.5 + step * queries / 100 for field in ("auc", "tpr") for side, step in sides}
        for sides in [(("_low", 0.2), ("", 0.4), ("_high", 0.6))]
        for name in AREA
        for attack in ("apollo", "random_directions")
        for queries in ((1, 5, 21) if attack == "apollo" else (1, 9, 21))
    ]
    points = discoveries.exposed_points(arrays, "apollo", 0.1, "base")
    whole = result | {
        "discoveries": discoveries.discovery_rows(arrays, 0.1),
        "exposed": {"setting": "base", "attack": "apollo", "fdr": 0.1, "dependence": "positive", "points": points},
        "three_way": three_way.three_way_rows(arrays),
        "budget": budget,
        "setting_utility": [
            {
                "setting": entry["setting"],
                "unlearner": name,
                "retain_accuracy": 0.97,
                "forget_accuracy": 0.88,
                "test_accuracy": accuracy - 0.01 * place,
            }
            for place, entry in enumerate(transfers())
            for name, accuracy in ACCURACY.items()
        ],
    }
    return written(whole, out)


def written(result: dict, out: Path) -> dict:
    """Write a result as a run does, judged by its rows, and return it."""
    whole = judge(run_of(json.loads(json.dumps(result)), ApolloResult)).document()
    (out / "result.json").write_text(json.dumps(whole, indent=1))
    return whole


def write_run(
    out: Path,
    *,
    sweep: bool = False,
    chosen: list[dict] | None = None,
    targets: int = 8,
    points: int = 50,
    seed: int = 0,
) -> dict:
    """Write result.json, scores.parquet and plan.yaml under ``out`` and return the result.

    Tables that a run may lack are missing (``write_whole_run`` has all).
    """
    entries = chosen or settings(sweep)
    name = f"run of apollo {json.dumps([entries, sweep, targets, points, seed])}"
    return left(drawn(name, lambda place: make_run(place, entries, sweep, targets, points, seed), __file__), out)


def make_run(out: Path, chosen: list[dict], sweep: bool, targets: int, points: int, seed: int) -> dict:
    """Write what ``write_run`` does."""
    rng = np.random.default_rng(seed)
    scores = score_table([entry["setting"] for entry in chosen], targets, points, seed)
    arrays = {name: scores.column(name).to_numpy(zero_copy_only=False) for name in scores.column_names}
    rows = summary.summarise(arrays, [0.05], bootstrap=200, permutations=200)
    utility = [
        {
            "unlearner": name,
            "target": target,
            "retain_accuracy": float(rng.normal(0.97, 0.01)),
            "forget_accuracy": float(rng.normal(0.79 if name == "retrain" else 0.9, 0.02)),
            "test_accuracy": float(rng.normal(accuracy, 0.006)),
            "distance": 0.0 if name == "identity" else float(rng.uniform(0.5, 9.0)),
            "seconds": float(rng.uniform(0.1, 1.2)),
            "flag": {"finetune": "did not move" if target < 3 else "", "identity": ""}.get(name, ""),
        }
        for name, accuracy in ACCURACY.items()
        for target in range(targets)
    ]
    result = {
        "schema": "orch.result/2",
        "name": "apollo-ablation" if sweep else "apollo-audit",
        "kind": "apollo",
        "seed": seed,
        "settings": chosen,
        "table": rows,
        "utility": utility,
        "warnings": ["the halves of the shadow pool share 3 % of their training points"],
        "population": {"models": 232, "reused": 0, "trained": 232},
        "holm": summary.holm_overview(rows),
        "expected_misses": null.expected_misses(len(rows), 0.95),
        "heatmap": heat_maps(),
        "paper_rule": [
            {
                "unlearner": name,
                "attack": attack,
                "taus": [0.25, 0.5, 0.75],
                "curve": [0.5, 0.62 if name != "retrain" else 0.54, 0.48],
                "best_tau": 0.5,
                "best": 0.62 if name != "retrain" else 0.54,
                "null_low": 0.52,
                "null_high": 0.57,
                "p": 0.01,
            }
            for name in AREA
            for attack in ("apollo_under", "apollo_over")
        ],
        "plan": copy.deepcopy(PLAN),
        "versions": {"orch": "0.1.0", "torch": "2.15.0", "ray": "2.60.0", "python": "3.11.9"},
        "seconds": 134.2,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "plan.yaml").write_text(yaml.safe_dump(PLAN, sort_keys=False))
    pq.write_table(scores, out / "scores.parquet")
    return written(result, out)
