"""A plausible finished TMIA run on disk, made from drawn statistics: result.json, scores.parquet, plan.yaml."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from audits.tmia.attacks import ATTACKS, Ruling
from audits.tmia.cells import cells, overfitted_rows, scores_rows
from audits.tmia.design import balanced
from audits.tmia.p_values import rank_p
from orchestrator.report.result import run_of
from orchestrator.tmia.result.judging import judge
from orchestrator.tmia.result.rows import TmiaResult

SELECTORS = ("none", "kmeans", "reference_loss")
NAMES = ("tmia_distance", "noise_votes", "label_gap", "tmia_posterior", "yeom")
JUDGED = ("target", "null", "overfitted")
QUERIES = {"tmia_distance": 316, "noise_votes": 32}
TARGETS, REFERENCE, NULL, OVERFITTED, CANDIDATES = 6, 39, 4, 4, 60
BETA = 0.05
PLAN = {
    "audit": {
        "kind": "tmia",
        "mode": "I",
        "star": None,
        "selectors": list(SELECTORS),
        "alpha": {"quantile": 0.95, "absolute": None, "size": None},
        "beta": BETA,
        "attacks": list(NAMES),
        "pool": 40,
        "level": 0.95,
        "bootstrap": 40,
    },
    "data": {"name": "fashion14", "root": None},
    "split": {
        "targets": TARGETS,
        "reference_models": REFERENCE,
        "null_models": NULL,
        "overfitted_models": OVERFITTED,
        "candidates": CANDIDATES,
        "train_size": 200,
    },
    "transfer": {"data": None, "classes": None, "train_size": 100, "n_frozen": 0},
    "model": {"name": "mlp", "settings": {"hidden": [128, 128], "dropout": 0.0}},
    "recipe": {"optimizer": "adamw", "epochs": 12},
    "variants": {},
    "seed": 0,
}


def statistics(rng: np.random.Generator, member: np.ndarray, signal: float) -> dict[str, dict[str, np.ndarray]]:
    """Return attack → group → statistic (models, K): members' losses are smaller at hard points, by ``signal``."""
    hard = rng.normal(size=CANDIDATES)
    models = {"target": TARGETS, "null": NULL, "reference": REFERENCE, "overfitted": OVERFITTED}
    nobody = np.zeros((1, CANDIDATES), bool)
    found: dict[str, dict[str, np.ndarray]] = {"hard": {"all": hard}}
    for group, count in models.items():
        seen = member if group == "target" else nobody
        shift = signal * seen * np.maximum(hard + 0.5, 0.0)
        if group == "overfitted":
            rng, shift = np.random.default_rng(7), 4.0 * memorised()
        logit = 0.5 - hard + 0.6 * rng.normal(size=(count, CANDIDATES)) + shift
        noisy = logit + 0.2 * rng.normal(size=logit.shape)
        values = {
            "tmia_posterior": -np.log1p(np.exp(-logit)),
            "tmia_distance": 0.3 * noisy,
            "noise_votes": np.round(32 / (1 + np.exp(-noisy))) / 32,
            "label_gap": (noisy > 0).astype(float),
            "yeom": -np.log1p(np.exp(-logit)),
        }
        for name, value in values.items():
            if group != "reference" or ATTACKS[name].ranked:
                found.setdefault(name, {})[group] = value
    return found


def memorised() -> np.ndarray:
    """Return which over-fitted model trained on which candidate."""
    return balanced(OVERFITTED, CANDIDATES, 1)


def rulings(seen: dict[str, dict[str, np.ndarray]], asked: np.ndarray, beta: float) -> dict[str, Ruling]:
    """Return what each attack says; two distances of the first target are missing."""
    found = {}
    for name in NAMES:
        attack = ATTACKS[name]
        rows = np.flatnonzero(asked) if attack.access == "labels" else np.arange(CANDIDATES)
        statistic = {group: values[:, rows].copy() for group, values in seen[name].items()}
        if name == "tmia_distance":
            statistic["target"][0, :2] = np.nan
        p = None
        if attack.ranked:
            own = {group: statistic[group] for group in JUDGED}
            p = {group: rank_p(values, statistic["reference"], True) for group, values in own.items()}
            decision = {
                group: attack.decider(values, statistic["reference"], beta)(np.arange(REFERENCE))
                for group, values in own.items()
            }
        else:
            cut = {"label_gap": 0.5, "yeom": -0.5}[name]
            decision = {group: statistic[group] > cut for group in JUDGED}
        found[name] = Ruling(rows, statistic, decision, QUERIES.get(name, 1), p)
    return found


def selections(rng: np.random.Generator, hard: np.ndarray, chosen: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return who is in Q by selector, (K,) bool, and who is asked label-only: the foremost 16 of each ranking."""
    rank = {"none": np.arange(CANDIDATES), "kmeans": np.argsort(-(hard + rng.normal(size=CANDIDATES)))}
    rank["reference_loss"] = np.argsort(-hard)
    everybody = np.arange(CANDIDATES)
    sizes = {"none": CANDIDATES, "kmeans": chosen, "reference_loss": chosen}
    asked = np.isin(everybody, np.concatenate([order[:16] for order in rank.values()]))
    return {name: np.isin(everybody, rank[name][: sizes[name]]) for name in SELECTORS}, asked


def fit_rows() -> list[dict]:
    """Return accuracies of normally fitted models."""
    accuracy = {"train_accuracy": 0.85, "test_accuracy": 0.82, "gap": 0.03, "flag": ""}
    groups = (("target", TARGETS), ("reference", REFERENCE), ("null", NULL))
    return [{"side": "asked", "group": group, "models": models, **accuracy} for group, models in groups]


def selection_row(selector: str, chosen: np.ndarray, asked: np.ndarray) -> dict:
    """Return what result.json says about a selection."""
    return {
        "selector": selector,
        "rule": "everybody" if selector == "none" else "above the .95 quantile of the reference samples",
        "threshold": None if selector == "none" else 1.25,
        "chosen": int(chosen.sum()),
        "asked": int((chosen & asked).sum()),
    }


def reconstruction_row(rng: np.random.Generator) -> dict:
    """Return a logistic map, its curve and its points."""

    def curve(distance: np.ndarray) -> dict[str, list[float]]:
        return {"distance": distance.tolist(), "confidence": (1 / (1 + np.exp(-3 * distance))).tolist()}

    words = {"map": "logistic", "pairs": 120, "dropped": 2, "rmse": 0.0213, "source": "reference"}
    return {**words, "curve": curve(np.linspace(-1.0, 2.0, 50)), "points": curve(rng.uniform(-1.0, 2.0, 120))}


def exposed_rows(ruling: Ruling, member: np.ndarray, ids: np.ndarray, label: np.ndarray) -> list[dict]:
    """Return the members that an attack recognises in one target or more."""
    hits = (ruling.decision["target"] & member[:, ruling.rows]).sum(0)
    place = {"attack": "tmia_distance", "selector": "kmeans", "targets": TARGETS // 2}
    return [
        {**place, "point_id": int(ids[row]), "label": str(label[row]), "hits": int(count), "false_calls": 0}
        for row, count in zip(ruling.rows, hits, strict=True)
        if count > 0
    ]


def write_tmia_run(
    out: Path,
    settings: dict[str, dict],
    *,
    name: str = "tmia-audit",
    signal: float = 2.5,
    chosen: int = 15,
    seed: int = 0,
) -> dict:
    """Write the three files under ``out`` and return the result.

    ``settings``: name → dotted changes (``audit.mode`` and ``audit.beta`` are obeyed, ``signal`` is that of this
    setting); ``chosen``: size of every selection.
    """
    tables, entries = [], []
    rows: dict[str, list] = {
        field: [] for field in ("table", "fit", "selections", "reconstruction", "exposed", "overfitted")
    }
    member = balanced(TARGETS, CANDIDATES, seed)
    ids = np.arange(1000, 1000 + CANDIDATES)
    for place, (setting, overrides) in enumerate(settings.items()):
        rng = np.random.default_rng(seed + place)
        mode, beta = overrides.get("audit.mode", "I"), overrides.get("audit.beta", BETA)
        seen = statistics(rng, member, overrides.get("signal", signal))
        selected, asked = selections(rng, seen.pop("hard")["all"], chosen)
        label = rng.integers(0, 10, CANDIDATES)
        said = rulings(seen, asked, beta)
        columns = scores_rows(said, member, ids, label, selected, asked, memorised())
        found = {
            "table": [{"mode": mode, **row} for row in cells(columns, selectors=SELECTORS, beta=beta, draws=40)],
            "fit": fit_rows(),
            "overfitted": overfitted_rows(said, memorised()),
            "selections": [selection_row(selector, selected[selector], asked) for selector in SELECTORS],
            "reconstruction": [reconstruction_row(rng)],
            "exposed": exposed_rows(said["tmia_distance"], member, ids, label),
        }
        for field, own in found.items():
            rows[field] += [{"setting": setting, **row} for row in own]
        size = columns["attack"].size
        tables.append({"setting": np.full(size, setting, object), "mode": np.full(size, mode, object), **columns})
        written = {path: value for path, value in overrides.items() if path != "signal"}
        entries.append({"setting": setting, "overrides": written, "mode": mode})
    result = {
        "schema": "orch.result/2",
        "name": name,
        "kind": "tmia",
        "seed": seed,
        "settings": entries,
        **rows,
        "warnings": ["the reference models draw 200 points each from a pool of 1000"],
        "notes": ["label_gap is left out of mode II"],
        "population": {"models": 49, "reused": 0, "trained": 49},
        "level": 0.95,
        "plan": copy.deepcopy(PLAN),
        "plan_hash": "0123456789abcdef",
        "versions": {"orch-audit": "0.1.0", "torch": "2.15.0"},
        "seconds": 91.4,
    }
    result = judge(run_of(json.loads(json.dumps(result)), TmiaResult)).document()
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps(result, indent=1))
    (out / "plan.yaml").write_text(yaml.safe_dump(PLAN, sort_keys=False))
    whole = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    pq.write_table(pa.table(whole), out / "scores.parquet")
    return result
