"""Words of the page of a given model: its verdict and its glossary."""

from __future__ import annotations

from orchestrator.gnq.given.rows import GivenResult, GroupRow
from orchestrator.report.chance import beyond
from orchestrator.report.numbers import estimate, number, percent
from orchestrator.report.result import of_setting
from orchestrator.report.sentence import Sentence

GROUPS = {"members": "training points", "controls": "controls"}
SCORES = {"loss": "loss", "squared_norm": "‖g‖²", "uniqueness": "GNQ"}
CHANCE = 0.5
ONE = (
    "The numbers hold for this model and these points, not for other models, not even of the same training. Exposure "
    "is no attack. How well it predicts attacks was measured on models trained for that purpose (docs/results/gnq.md)."
)

GLOSSARY = {
    "GNQ": (
        "Gradient uniqueness, gᵀ(S + λI)⁻¹g with S the sum of ggᵀ over the other scored points: how poorly a point’s "
        "gradient is explained by theirs. λ is relative to the mean of ‖g‖², so points whose gradient has vanished "
        "have a GNQ near 0."
    ),
    "Leverage": (
        "GNQ/(1 + GNQ): the share of its own gradient that a point explains itself, from 0 (the others explain all) to "
        "1 (they explain nothing). ¾ is a GNQ of 3, for which ½·log₂(1 + GNQ) is one bit at one look: all there is to "
        "know about membership."
    ),
    "Bits": (
        "min(1, Σ ½·log₂(1 + GNQ)) over the given checkpoints: an estimate under a Gaussian model of what these steps "
        "can reveal about whether the point was used. It is no guarantee. The final weights alone leave out the whole "
        "training."
    ),
    "Training points": "The points that the section target names as members.",
    "Controls": (
        "Points of the same data set that the model was not trained on, scored among each other in the same way. Their "
        "gradients do not vanish as those of members do."
    ),
    "AUC": (
        "How often a member has a lower value than a control, ties counted half: .500 if the score does not tell them "
        "apart. With the loss, this is the simplest membership attack. Intervals are over these points."
    ),
    "Vanished": "Points whose gradient is smaller than the rounding of float32 weights (‖g‖/‖w‖ < 1.2e-7).",
    "Copied": "Points that equal another one of their group: each explains the gradient of the other.",
}


def verdict(run: GivenResult) -> list[Sentence]:
    """Return the statements about the main setting of a run, in the order in which they should be read."""
    rows = {row.group: row for row in of_setting(run.table, run.main_setting)}
    members, controls = rows["members"], rows.get("controls")
    said = [exposure(run, members)]
    if controls is not None:
        said += [beside(members, controls), *apart(run)]
    if members.vanished > 0:
        said.append(at_rest(members))
    return [*said, Sentence("plain", "Scope", ONE)]


def exposure(run: GivenResult, row: GroupRow) -> Sentence:
    """Say how many training points stand out."""
    share = percent(1 - run.leverage, 0)
    highest = "" if row.highest is None else f", the highest {row.highest:.3g}"
    found = (
        f"{row.exposed_points} of {row.points} training points ({percent(row.exposed)}) stand out: the other gradients "
        f"explain less than {share} of theirs (leverage {run.leverage:g} or more). The median GNQ is "
        f"{row.uniqueness.value:.3g}{highest}."
    )
    return Sentence("leak" if row.exposed_points else "good", "Exposed points", found)


def beside(members: GroupRow, controls: GroupRow) -> Sentence:
    """Say what the same measure gives on points that the model was not trained on."""
    text = (
        f"Of {controls.points} points that the model was not trained on, {controls.exposed_points} stand out in the "
        f"same way ({percent(controls.exposed)}; median GNQ {controls.uniqueness.value:.3g}). Median "
        f"loss {members.loss:.3g} on training points, {controls.loss:.3g} on controls; accuracy "
        f"{number(members.accuracy)} and {number(controls.accuracy)}."
    )
    return Sentence("plain", "Controls", text)


def apart(run: GivenResult) -> list[Sentence]:
    """Say how far the loss, and GNQ, tell training points from controls."""
    rows = {row.score: row for row in of_setting(run.separation, run.main_setting)}
    if "loss" not in rows:
        return []
    loss = rows["loss"].auc
    told = "; ".join(f"{SCORES[name]} {estimate(row.auc)}" for name, row in rows.items())
    seen = beyond(loss)
    text = f"AUC at which a lower score tells training points from controls: {told}."
    if rows["uniqueness"].auc.holds(CHANCE):
        text += (
            " GNQ does not tell the two apart: at these weights, points stand out for what they are, whether the model "
            "was trained on them or not."
        )
    return [Sentence("leak" if seen else "plain", "Membership by the simplest attack", text)]


def at_rest(members: GroupRow) -> Sentence:
    """Say that the model has come to rest at some points."""
    text = (
        f"The gradients of {percent(members.vanished)} of the training points are below the rounding of the weights, "
        "so the order of these points is noise."
    )
    return Sentence("bad", "Vanished gradients", text)
