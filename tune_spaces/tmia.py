"""Experiments on TMIA (Journal on Communications 42(10), 2021): what its tables and figures vary, and the controls.

A setting is one plan, so each takes the variants of the plan in hand away. Students and their teachers:
``tune_spaces.tmia_transfer``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from audits.data.catalogue import describe
from audits.errors import BadInput
from audits.tmia.shared_pool import pool_sets_of, smallest
from tune_spaces.registry import Settings, Sweep, sweep

Changes = dict[str, Any]
Values = Mapping[str, Any]

ALONE: Changes = {"variants": {}}
NO_FILE: Changes = {"transfer.teacher": None, "transfer.teacher_input": None}
LEVELS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1)
POOL, FILLER = 10, 7  # training sets that the attacker and targets draw from; with less p-values are not to be trusted
LOOKING = ("nasr", "stolen_memories")  # older attacks of the paper's Fig. 1 that the default leaves out
NULL = 60  # of a sweep about rates, where the plan has none


def architectures(plan: Values) -> Settings:
    """Return attack I on every architecture of the plan's size."""
    return {name: {**ALONE, **attack("I"), "model": model} for name, model in architectures_of(plan).items()}


def architectures_of(plan: Values) -> dict[str, Changes]:
    """Return the plan's ``model`` by name of every architecture of its size: small ones, or the paper's that fit.

    The plan's own architecture keeps the plan's settings.
    """
    own = plan["model"]
    if own["name"] in ("mlp", "cnn") or own["settings"].get("width", 64) < 64:
        models: dict[str, Changes] = {"mlp": {}, "cnn": {}, "resnet18": {"width": 8}}
    else:
        stem = {"stem": own["settings"].get("stem", "cifar")}
        models = {"vgg16": stem, "vgg19": stem, "resnet50": stem, "inception_v3": {}}
        if min(describe(plan["data"]["name"], plan["data"]["root"]).shape[1:], default=0) < 75:
            del models["inception_v3"]  # which cannot read smaller images
    models |= {own["name"]: own["settings"]}
    return {name: {"name": name, "settings": dict(settings)} for name, settings in models.items()}


def overfit(plan: Values) -> Settings:
    """Return the plan's epochs × 1, 2, 4 and 8, and a quarter of its training set: normal fits to over-fitted ones.

    The older attacks of Fig. 1 that read the weights are added to those of the plan. Where fewer train, fewer can be
    asked about, as a target trains on half of the candidates.
    """
    epochs, split = plan["recipe"]["epochs"], plan["split"]
    attacks = list(dict.fromkeys([*plan["audit"]["attacks"], *LOOKING]))
    settings: dict[str, Changes] = {
        f"epochs={epochs * factor}": {**ALONE, "audit.attacks": attacks, "recipe.epochs": epochs * factor}
        for factor in (1, 2, 4, 8)
    }
    size = split["train_size"] // 4
    asked = even(min(split["candidates"], size))
    settings[f"train_size={size}"] = {
        **ALONE,
        "audit.attacks": attacks,
        "split.train_size": size,
        "split.candidates": asked,
        "audit.asked": min(plan["audit"]["asked"], asked),
    }
    return settings


def beta(plan: Values) -> Settings:
    """Return the levels β that the plan's reference models can reach."""
    least = smallest(plan["split"]["reference_models"], sets_of(plan, plan["split"]["attacker_points"]))
    return {f"beta={level:g}": {**ALONE, "audit.beta": level} for level in LEVELS if level >= least}


def attack(mode: str) -> Changes:
    """Return what makes a plan one of ``mode``, with the y* of that mode and nothing frozen."""
    return {"audit.mode": mode, "audit.star": None, "transfer.n_frozen": 0, **NO_FILE}


def pools(plan: Values) -> Settings:
    """Return attacker's pools of 1, 5, 15 and 25 training sets on seeds 6 to 10, by true confidences: rates under H0.

    Nothing is asked with labels only, so it is cheap; three null models for one of the plan's. Left out are pools that
    would leave less filler than ``FILLER`` training sets, and those with which β cannot be reached.
    """
    audit, split = plan["audit"], plan["split"]
    facts = describe(plan["data"]["name"], plan["data"]["root"])
    points = taking_part(facts.points, len(facts.classes or ()), split["classes"])
    room = points - split["candidates"] - FILLER * split["train_size"] if points else split["attacker_points"]
    found: dict[str, Changes] = {}
    for multiple in (1, 5, 15, 25):
        pool = multiple * split["train_size"]
        if pool > room or smallest(split["reference_models"], sets_of(plan, pool)) > audit["beta"]:
            continue
        for seed in range(6, 11):
            found[f"pool={multiple}n/seed={seed}"] = {
                **ALONE,
                "seed": seed,
                "audit.attacks": ["tmia_posterior"],
                "audit.reference_samples": min(audit["reference_samples"], pool - audit["reconstruction"]["points"]),
                "split.attacker_points": pool,
                "split.null_models": 3 * split["null_models"] or NULL,
            }
    if not found:
        raise BadInput(
            f"no pool of 1, 5, 15 or 25 training sets of {split['train_size']} points leaves {FILLER} of filler and "
            f"reaches beta = {audit['beta']:g} with {split['reference_models']} reference models; "
            "lower split.train_size"
        )
    return found


def taking_part(points: int | None, classes: int, chosen: Any) -> int | None:
    """Return how many points are of the ``chosen`` classes of a data set, taken to be equally large; None: unknown."""
    if chosen is None or points is None:
        return points
    if not classes:
        return None
    number = {"even": (classes + 1) // 2, "odd": classes // 2}.get(chosen) if isinstance(chosen, str) else len(chosen)
    return points * (number or 0) // classes


def sets_of(plan: Values, pool: int) -> float:
    """Return the training sets of a pool, as p-values are corrected for them."""
    return pool_sets_of(pool, plan["split"]["train_size"], corrected=plan["audit"]["pool_correction"])


def even(number: int) -> int:
    """Return the largest even number up to ``number``."""
    return number - number % 2


SWEEPS_OF_THE_PAPER: tuple[tuple[str, str, Callable[[Values], Settings], str], ...] = (
    (
        "tmia-attack-1",
        "Attack I, a teacher about its training set, on every architecture of the plan's size",
        architectures,
        "Table 1 of the paper",
    ),
    (
        "tmia-overfit",
        "From normally fitted to over-fitted models: more epochs, or fewer points",
        overfit,
        "Fig. 1 of the paper",
    ),
    (
        "tmia-beta",
        "The level at which a candidate is called a member",
        beta,
        "precision against promised and found false positives",
    ),
    (
        "tmia-pool",
        "How many training sets the attacker's pool must hold for (corrected) p-values to keep their rate: five seeds",
        pools,
        "false positives of null models against the size of the pool",
    ),
)
for name, title, varies, makes in SWEEPS_OF_THE_PAPER:
    sweep(Sweep(name, title, "tmia-fashion14", varies, "precision of tmia_distance", makes))
