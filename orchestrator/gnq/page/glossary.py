"""Names of groups, shadows and moments on a GNQ page, and the terms that it explains."""

from __future__ import annotations

GROUPS = {
    "contributors": "all contributors",
    "kept": "kept, same rule on both sides",
    "kept_unfiltered": "kept against all non-members",
    "removed": "removed, same rule on both sides",
    "removed_unfiltered": "removed against all non-members",
}
SHADOWS = {"none": "no shadows", "naive": "naive shadows", "adaptive": "adaptive shadows"}
RULES = {"same": "the twin’s points of the same bin", "all": "all of the twin’s points"}
REFERENCES = ("no defence", "the same at random", "the same by loss")
"""What ``GnqRun.against`` compares an arm with, in its order."""
MOMENTS = {"after": "published model", "before": "before removal", "null": "model that saw no point"}

GLOSSARY = {
    "GNQ": (
        "Gradient uniqueness: how poorly a point’s gradient is explained by the gradients of the others. Points are "
        "ranked by Σ ½·log₂(1 + GNQ) along training, in mode ridge; “diagonal” treats each parameter by itself."
    ),
    "Bits": (
        "min(1, Σ ½·log₂(1 + GNQ)): an estimate, from checkpoints and with ridge, of the bound on how much training "
        "can reveal about whether the point was used. It holds under a Gaussian model at best and is no guarantee. "
        "Many points reach 1, so the ranking uses the sum without the minimum."
    ),
    "Pool, twins, target": (
        "A pool is split at random into two halves, and a model is trained on each. The points of one are the "
        "non-members of the other. These two models are the targets of the pool. Intervals are over pools."
    ),
    "Shadow model": (
        "Trained by the attacker on other halves of the same pool. Naive shadows ignore the defence; adaptive ones go "
        "through all of it, like those of an attacker who knows about it."
    ),
    "Headline": (
        "The attack with the largest mean AUC, on all points whose data were used (removed or not) against all of the "
        "twin’s, with adaptive shadows (naive without a defence)."
    ),
    "Same rule": (
        "Members and non-members passed the same filter: the points that a target kept against those that its twin "
        "kept. Otherwise the filter alone changes the AUC."
    ),
    "AUC": "Probability that a member’s score exceeds a non-member’s; ½ is chance. Mean over targets.",
    "Two-sided AUC": (
        "For an attacker who may reverse the score: 1 − AUC if members of the other pools score lower. Needs two pools "
        "or more."
    ),
    "Null models": (
        "The control: models of the next pool, which saw no point of this one, judged as if they were its targets. "
        "Their AUC must be ½, except where only one side is filtered."
    ),
    "Fully exposed, onion effect": (
        "A point is fully exposed if every model trained on it is more confident about it than every model that was "
        "not. Removal can expose points that were hidden behind the removed ones. “By chance” is the share that chance "
        "alone gives."
    ),
    "DP-SGD, ε": (
        "Training with clipped and noised gradients. ε bounds what any attack can learn about any one point, if "
        "loosely where it is large. Removal and noise on some gradients give no such bound."
    ),
    "ε at least": (
        "A lower bound that attacks prove: the lower end of a one-sided interval, from guesses which of two matched "
        "points a model was trained on. 0 if nothing is proved. It can refute a guarantee but never give one."
    ),
    "Control score": "A ranking that does not use GNQ: loss, gradient norm, chance. GNQ must beat them to be of use.",
    "Interval": (
        "Student t over pools of the mean of the two twins; differences are paired by pool. None for a single pool. "
        "Bins use pools as units too: points of a pool share models and shadows, and a bootstrap of so few pools is "
        "too narrow."
    ),
    "λ": "The ridge, in units of the mean ‖g‖². The plan fixes it before anything is trained; a run does not tune it.",
    "Holm": "All p-values are judged together, so even one false claim is unlikely.",
    "Null": "No difference from chance, or from a control, is shown by this run. This does not prove safety.",
}
