"""Experiments on Apollo (arXiv 2506.09923): what its tables and figures vary, and the controls that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audits.apollo.attacks import ATTACKS
from audits.unlearning import UNLEARNERS
from tune_spaces.registry import Settings, Sweep, sweep

SEARCH = "audit.search"
CONTROLS = ("identity", "retrain")


def ablation(plan: Mapping[str, Any]) -> Settings:
    """Return one-at-a-time changes of β/α, m, ε and T around the plan.

    ε varies at the plan's T; T varies at the plan's final radius ε·T, so that it says what more steps add.
    """
    search, shadows = plan["audit"]["search"], plan["split"]["shadows"]
    radius = search["epsilon"] * search["steps"]
    settings: dict[str, dict[str, Any]] = {"base": {}}
    settings |= {f"beta/alpha={ratio:g}": {f"{SEARCH}.beta": ratio * search["alpha"]} for ratio in (0.25, 1.0, 16.0)}
    settings |= {f"m={count}": {f"{SEARCH}.shadows": count} for count in (4, 8, 16, 32) if count < shadows}
    settings |= {f"epsilon={width:g}": {f"{SEARCH}.epsilon": width} for width in (0.02, 0.05, 0.2, 1.0)}
    settings |= {f"T={steps}": {f"{SEARCH}.steps": steps, f"{SEARCH}.epsilon": radius / steps} for steps in (1, 10, 25)}
    return settings


def demonstration(plan: Mapping[str, Any]) -> Settings:
    """Return the plan as it is, and what costs little of the ablation and moves its AUC most: m, a far ε, one step."""
    settings = ablation(plan)
    return {name: settings[name] for name in ("base", "m=4", "epsilon=1", "T=1") if name in settings}


def every_method(plan: Mapping[str, Any]) -> Settings:
    """Return one setting: all unlearning methods, those of the plan as they stand there, and all attacks."""
    given = list(plan["unlearning"])
    present = {entry["method"] for entry in given}
    added = [{"method": name} for name in UNLEARNERS if name not in present]
    methods = [entry for entry in given if entry["method"] != "retrain"] + [
        entry for entry in added if entry["method"] != "retrain"
    ]
    last = [entry for entry in [*given, *added] if entry["method"] == "retrain"]
    return {"base": {"unlearning": [*methods, *last], "audit.attacks": list(ATTACKS)}}


def transfer(plan: Mapping[str, Any]) -> Settings:
    """Return every pair target ← shadow of architectures of the plan's size: small ones, or the paper's."""
    small: dict[str, dict[str, Any]] = {"mlp": {}, "cnn": {}, "resnet18": {"width": 8}}
    large: dict[str, dict[str, Any]] = {"resnet18": {}, "vgg16": {}, "swin_t": {}}
    models = small if plan["model"]["name"] in ("mlp", "cnn") else large
    return {
        f"{target}<-{shadow}": {
            "model": {"name": target, "settings": of_target},
            "shadow_model": {"name": shadow, "settings": of_shadow},
        }
        for target, of_target in models.items()
        for shadow, of_shadow in models.items()
    }


def forget_ratio(plan: Mapping[str, Any]) -> Settings:
    """Return forget sets of 1, 10 and 50 % of the training set; where few are forgotten, few can be asked about.

    Small training sets start at 5 %: 1 % of 500 is five points, on which no rate can be measured.
    """
    split = plan["split"]
    found = {}
    for share in (0.01 if split["train_size"] >= 2500 else 0.05, 0.1, 0.5):
        count = min(split["candidates"]["forget"], round(share * split["train_size"]))
        found[f"forget={share:g}"] = {
            "split.forget": share,
            "split.candidates.forget": count,
            "split.candidates.unseen": count,
        }
    return found


def private(plan: Mapping[str, Any]) -> Settings:
    """Return DP-SGD at ε = 512, 8 and 2 beside none; shadows are trained by the same recipe.

    The guarantee is the trained model's; what gradient ascent reads of the forget set afterwards is outside of it.
    """
    methods = [entry for entry in plan["unlearning"] if entry["method"] in ("identity", "gradient_ascent", "retrain")]
    base = {"unlearning": methods}
    return {"none": base} | {
        f"dp_epsilon={budget:g}": {**base, "recipe.target_epsilon": float(budget), "recipe.max_grad_norm": 1.0}
        for budget in (512, 8, 2)
    }


def ascents(plan: Mapping[str, Any]) -> Settings:
    """Return gradient ascent from too weak to ruinous."""
    ascent = next((entry for entry in plan["unlearning"] if entry["method"] == "gradient_ascent"), None)
    base: dict[str, Any] = {"method": "gradient_ascent", "learning_rate": 0.04} | dict(ascent or {})
    return {
        f"strength={factor:g}": between_controls(base | {"learning_rate": base["learning_rate"] * factor})
        for factor in (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
    }


def strength(plan: Mapping[str, Any]) -> Settings:
    """Return gradient ascent from too weak to ruinous, and random labels learnt from hardly to by heart.

    Ascent that goes too far breaks the whole model; random labels that are learnt by heart are what over-unlearning
    looks like: the forgotten points are answered wrongly, and all others as before.
    """
    return {
        **ascents(plan),
        **{
            f"random label epochs={epochs}": between_controls(
                {"method": "random_label", "learning_rate": 0.06, "epochs": epochs}
            )
            for epochs in (10, 30, 60, 100)
        },
    }


def between_controls(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the change of a plan that leaves one unlearning method beside the controls."""
    return {"unlearning": [{"method": "identity"}, dict(entry), {"method": "retrain"}]}


def radius(plan: Mapping[str, Any]) -> Settings:
    """Return final radii × norms of the search, and steps to the plan's own radius: what settles ε, T and the norm.

    Only attacks that walk are judged and the single query that they begin with, against gradient ascent and the
    controls: the search is the same for every method.
    """
    search = plan["audit"]["search"]
    own, steps = search["epsilon"] * search["steps"], search["steps"]
    methods = [entry for entry in plan["unlearning"] if entry["method"] in ("identity", "gradient_ascent", "retrain")]
    shared = {
        "unlearning": methods,
        "audit.attacks": ["apollo", "apollo_offline", "random_directions", "single_query"],
    }
    settings: dict[str, dict[str, Any]] = {}
    for norm, radii in (("l2", {0.25, 0.5, 1.0, 2.0, 4.0, own}), ("linf", {0.025, 0.05, 0.1})):
        for far in sorted(radii):
            settings[f"{norm}={far:g}"] = {f"{SEARCH}.norm": norm, f"{SEARCH}.epsilon": far / steps}
    for count in sorted({1, 10} - {steps}):
        settings[f"T={count}"] = {f"{SEARCH}.epsilon": own / count, f"{SEARCH}.steps": count}
    return {name: {**changes, **shared} for name, changes in settings.items()}


sweep(
    Sweep(
        name="apollo-ablation",
        title="Apollo's β/α, m, ε and T on one shared population",
        base="apollo-fashion14",
        varies=ablation,
        metric="apollo AUC",
        makes="Fig. 5 and Fig. 6 of arXiv 2506.09923",
    )
)

sweep(
    Sweep(
        name="apollo-demo",
        title="What `make demo` runs: four settings of apollo-ablation, the plan's own first",
        base="apollo-fashion14",
        varies=demonstration,
        metric="apollo AUC",
        makes="the cheap settings of Fig. 5 and Fig. 6 of arXiv 2506.09923",
        ahead=True,
    )
)

sweep(
    Sweep(
        name="apollo-unlearners",
        title="Every unlearning method × every attack",
        base="apollo-fashion14",
        varies=every_method,
        metric="apollo AUC",
        makes="Tables II to IV of arXiv 2506.09923",
    )
)

sweep(
    Sweep(
        name="apollo-transfer",
        title="Shadows of another architecture than the target's",
        base="apollo-fashion14",
        varies=transfer,
        metric="apollo AUC",
        makes="Table V of arXiv 2506.09923",
    )
)

sweep(
    Sweep(
        name="apollo-forget-ratio",
        title="Forget sets of 1 (small sets: 5), 10 and 50 % of the training set",
        base="apollo-fashion14",
        varies=forget_ratio,
        metric="apollo AUC",
        makes="power against the size of the forget set",
    )
)

sweep(
    Sweep(
        name="apollo-dp",
        title="DP-SGD as a defence, known to the attacker",
        base="apollo-fashion14",
        varies=private,
        metric="apollo AUC",
        makes="power against ε of DP-SGD",
    )
)

sweep(
    Sweep(
        name="apollo-strength",
        title="Unlearning from too weak to too strong: where under-unlearning turns into over-unlearning",
        base="apollo-fashion14",
        varies=strength,
        metric="apollo AUC",
        makes="UNDER and OVER against the utility they cost",
    )
)

sweep(
    Sweep(
        name="apollo-toy2d",
        title="The two-dimensional example with gradient ascent from too weak to too strong",
        base="apollo-toy2d",
        varies=ascents,
        metric="apollo AUC",
        makes="UNDER and OVER of Fig. 3 of arXiv 2506.09923 in numbers; examples/apollo_toy2d.py draws the map",
    )
)

sweep(
    Sweep(
        name="apollo-radius",
        title="Final radius, steps and norm of the search",
        base="apollo-fashion14",
        varies=radius,
        metric="apollo AUC",
        makes="the choice of ε and T for a size of images",
    )
)
