"""Experiments on gradient uniqueness (arXiv 2510.10902): what its tables and figures vary, and the controls.

A plan holds all its arms, so that a setting is one plan of models, points and defences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from audits.gnq.private_recipe import private_recipe
from tune_spaces.registry import Settings, Sweep, sweep

Values = Mapping[str, Any]

REMOVED_BY = (
    "gnq_log",
    "gnq_sum",
    "diagonal",
    "loss_log",
    "final_loss",
    "gradient_norm",
    "twin_loss",
    "random",
)
EPSILONS = (2.0, 8.0, 512.0)
SEEDS = (1, 2, 3, 4, 5)
NOT_DEFENDED: dict[str, Any] = {"defences": []}
FAMILIES = (
    ("mlp", "cnn"),
    ("cnn", "resnet18", "resnet50", "vgg16", "vgg19", "swin_t", "inception_v3"),
)
"""Architectures for small images, and for larger ones; the first two of a family stand beside each of its own."""


def removals(share: float, rankings: tuple[str, ...] = REMOVED_BY) -> list[dict[str, Any]]:
    """Return removal of a share by each ranking."""
    return [{"method": "remove", "ranking": name, "share": share} for name in rankings]


def own_share(plan: Values) -> float:
    """Return the share of the plan's first removal."""
    return next((float(entry["share"]) for entry in plan["defences"] if entry["method"] == "remove"), 0.2)


def private(plan: Values) -> list[dict[str, Any]]:
    """Return DP-SGD at each ε, by the recipe of the plan's own DP-SGD, or by the default one (a warning says so)."""
    own = [entry["recipe"] for entry in plan["defences"] if entry["method"] == "dp_sgd"]
    if not own:
        default = asdict(private_recipe(EPSILONS[0]))
        own = [{**default, "batch_size": min(default["batch_size"], plan["split"]["train_size"])}]
    return [
        {"method": "dp_sgd", "recipe": {**own[0], "noise_multiplier": None, "target_epsilon": each}}
        for each in EPSILONS
    ]


def table_one(plan: Values) -> Settings:
    """Return one setting with every arm: removal by all rankings, noise on exposed and on random points, DP-SGD.

    The share is that of the plan's first removal. A plan with ``audit.in_batch`` ranks by that too, one with
    ``audit.held_out`` by held-out loss, one that looks in mode pinv by the paper's own ranking, the plain sum.
    """
    share = own_share(plan)
    audit = plan["audit"]
    further = (
        *(["held_out_loss"] if audit.get("held_out") else []),
        *(["in_batch"] if audit.get("in_batch") else []),
        *(["pinv_sum"] if "pinv" in audit["modes"] else []),
    )
    noise = [{"method": "noise", "ranking": name, "share": share, "strength": 1.0} for name in ("gnq_log", "random")]
    return {"base": {"defences": [*removals(share, (*REMOVED_BY, *further)), *noise, *private(plan)]}}


def models(plan: Values) -> Settings:
    """Return the plan without defences on each small architecture or, for larger images, on those of the paper.

    An architecture that reads something else than images, such as words, stands alone: nothing else reads its data.
    """
    own = plan["model"]
    beside = next((family for family in FAMILIES if own["name"] in family), ())
    found = {name: {} for name in beside[:2]} | {own["name"]: own["settings"]}
    return {
        name: {**NOT_DEFENDED, "model": {"name": name, "settings": dict(settings)}} for name, settings in found.items()
    }


def training(plan: Values) -> Settings:
    """Return the plan without defences, with fewer and more epochs, points, units, points a step, and step size."""
    recipe, split = plan["recipe"], plan["split"]
    found: dict[str, dict[str, Any]] = {"base": {}}
    for factor in (1 / 3, 3):
        epochs = max(1, round(recipe["epochs"] * factor))
        found[f"epochs={epochs}"] = {"recipe.epochs": epochs}
    for factor in (1 / 4, 1 / 2):
        points = max(4, round(split["train_size"] * factor))
        found[f"points={points}"] = {"split.train_size": points}
    for factor in (1 / 5, 4):
        batch = max(1, round(recipe["batch_size"] * factor))
        found[f"batch={batch}"] = {"recipe.batch_size": batch}
    for factor in (1 / 4, 4):
        rate = recipe["learning_rate"] * factor
        found[f"rate={rate:g}"] = {"recipe.learning_rate": rate}
    for name, settings in sizes(plan["model"]).items():
        found[name] = {"model": {"name": plan["model"]["name"], "settings": settings}}
    return {name: {**NOT_DEFENDED, **changes} for name, changes in found.items()}


def ridges(plan: Values) -> Settings:
    """Return the plan without defences at a hundredth to a hundred times its λ, on the same trained models."""
    own = plan["audit"]["ridge"]
    apart = {} if plan["audit"]["in_batch"] else {"audit.looks": "apart"}  # λ decides what is seen, not what is trained
    values = [float(f"{own * factor:.6g}") for factor in (1e-2, 1e-1, 1.0, 1e1, 1e2)]
    return {f"ridge={each:g}": {**NOT_DEFENDED, **apart, "audit.ridge": each} for each in values}


def sizes(model: Values) -> dict[str, dict[str, Any]]:
    """Return an architecture with fewer and with more units, where its settings say how many; else nothing.

    Lists of units are cut to a quarter and made four times as long; channels and widths are halved and doubled.
    """
    settings = model["settings"]
    for name, factors in (("channels", (1 / 2, 2)), ("width", (1 / 2, 2)), ("hidden", (1 / 4, 4))):
        if name in settings:
            given = settings[name]
            if isinstance(given, list):
                scaled: list[Any] = [[max(1, round(each * factor)) for each in given] for factor in factors]
            else:
                scaled = [max(1, round(given * factor)) for factor in (1 / 2, 2)]
            words = ["x".join(map(str, each)) if isinstance(each, list) else str(each) for each in scaled]
            return {f"{name}={word}": {**settings, name: each} for word, each in zip(words, scaled, strict=True)}
    return {}


def inversion(plan: Values) -> Settings:
    """Return the plan with model inversion, undefended and without one point: the most exposed one, or one at random.

    Classes of objects are broad, and what is found is then the class; a class of faces is one person.
    """
    one = removals(1 / plan["split"]["train_size"], ("gnq_log", "loss_log", "random"))
    return {"base": {"audit.inversion": plan["audit"]["inversion"] or {}, "defences": one}}


def seeds(plan: Values) -> Settings:
    """Return the plan's removal by uniqueness, by two losses and at random on each of ``SEEDS``, and nothing else.

    The seeds were fixed before any of them was run; 0 is not among them, on which everything else was measured.
    """
    defences = removals(own_share(plan), ("gnq_log", "twin_loss", "loss_log", "random"))
    return {f"seed={each}": {"seed": each, "defences": defences} for each in SEEDS}


SWEEPS_OF_THE_PAPER: tuple[tuple[str, str, Callable[[Values], Settings], str], ...] = (
    (
        "gnq-table1",
        "Removal by every ranking, noise on exposed points and DP-SGD at ε 2, 8 and 512, under adaptive attack",
        table_one,
        "Table 1 of arXiv 2510.10902",
    ),
    (
        "gnq-bins",
        "Attack success by bins of gradient uniqueness, on each architecture of the plan's size",
        models,
        "Fig. 5 of arXiv 2510.10902",
    ),
    (
        "gnq-training",
        "Epochs, points, units, points a step and step size against uniqueness and attack",
        training,
        "Fig. 7 of arXiv 2510.10902",
    ),
)
for name, title, varies, makes in SWEEPS_OF_THE_PAPER:
    sweep(Sweep(name, title, "gnq-fashion14", varies, "AUC of the strongest attack on all contributors", makes))
sweep(
    Sweep(
        "gnq-ridge",
        "λ of mode ridge against what uniqueness foretells",
        "gnq-fashion14",
        ridges,
        "Spearman of GNQ with each point's loss gap and with LiRA",
        "how much of what GNQ foretells hangs on λ",
    )
)
sweep(
    Sweep(
        "gnq-inversion",
        "Model inversion before and after the most exposed image is removed (gnq-faces; other classes are broad)",
        "gnq-fashion14",
        inversion,
        "SSIM of reconstructions to the image, by the target's model and by its twin's",
        "Fig. 6 of arXiv 2510.10902, with plan gnq-faces",
    )
)
sweep(
    Sweep(
        "gnq-seeds",
        "Removal by uniqueness, by loss and at random on five seeds fixed beforehand",
        "gnq-fashion14",
        seeds,
        "AUC under removal by GNQ minus that under removal at random, over seeds and pools",
        "how far the gain of removal by GNQ hangs on the seed",
    )
)
