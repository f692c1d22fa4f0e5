"""Names of components on a membership page, and the terms that it explains."""

from __future__ import annotations

from orchestrator.report import words as shared

NAMES = {
    "lira_offline_moderated": "LiRA offline, moderated variance",
    "rmia_offline": "RMIA offline",
    "rmia_softened": "RMIA, softened",
    "qmia": "QMIA",
    "one_shadow": "one shadow (IAM)",
    "label_gap": "label gap",
    "boundary_distance": "boundary distance",
}

GLOSSARY = {
    "Member, non-member": (
        "A point of a pool that the target trained on, and one that it did not. Each target trained on half of its "
        "pool, drawn at random, so that both are of one kind."
    ),
    "AUC": (
        "Probability that a member gets a higher score than a non-member: ½ is chance, 1 is certainty. Here it is the "
        "mean of the AUCs within each target."
    ),
    "TPR": "Share of members that are called members at the threshold fixed for the promised false-positive rate.",
    "Promised and found FPR": (
        "Thresholds are fixed for a promised share of false calls, on shadows that play the target or on known "
        "non-members, never on judged points. Found is the share of the targets’ non-members that are called members."
    ),
    "FPR on null models": (
        "The same share for models that saw no point of the pool: targets of other pools. Every call is false there."
    ),
    "Void": (
        "In the place of a TPR, of what a call is worth, or of p- and q-values: a promised rate was broken, also after "
        "Holm’s correction, so that nothing that rests on it may be quoted. AUC and TPR on the ROC stand."
    ),
    "Worth of a call": (
        "Share of the calls “member” that are right, if so many of the points that somebody asks about are members: "
        "π·TPR/(π·TPR + (1 − π)·FPR) at the rates found. Brackets take the careful and the bold end of both rates."
    ),
    "Canary": (
        "A point that models are taught with a wrong label: who fits it has memorised it. The positive control: where "
        "an attack does not find canaries, its null result on other points says nothing. Decisions do not rest on them."
    ),
    "Pool, twins": (
        "A pool is 2n points that no other model of the run trains on. Two targets and the shadows are trained on "
        "halves of it, in twins of complementary halves. Intervals are over pools: their models and points are new."
    ),
    "Shadow": (
        "A model that the attacker trains as targets are trained, with points known. Pairs of twins are left out in "
        "turn: a fit to the rest judges the target, and, as its null, the points that the left-out twins never saw."
    ),
    "Stranger": (
        "A shadow of another pool: it saw none of the points, nor any other that shadows of this pool have. A point is "
        "called a member where the null of twins and that of strangers both allow it, so that promised rates hold "
        "whether a target shares the pool or was trained on other data."
    ),
    "Known non-member": (
        "A point outside of all pools, which the attacker knows that no target saw. Attacks without shadows take their "
        "threshold from them, which assumes that they are drawn as the pool’s points are."
    ),
    "Lower bound on ε": (
        "The attack guesses which of two matched points a target was trained on. So many right guesses would be too "
        "improbable if training were (ε, δ)-differentially private with a smaller ε. It holds for this recipe and "
        "these points, whatever the attack; a small bound is no upper bound."
    ),
    "p and q": (
        "p: how rarely a point that a model did not train on scores as high. q: the least share of false ones in a "
        "list that goes down to the point (Benjamini and Hochberg)."
    ),
    "Recognised by shadows": (
        "Of the shadows that had the point, the share in which it lies above 99 % of non-members when the fit has not "
        "met them: exposed in other trainings as well, not by luck of this one."
    ),
}

OF_POOLS = ("Member, non-member", "FPR on null models", "Canary", "Pool, twins", "Stranger")
"""Terms of plans that train their targets."""


def words(name: str) -> str:
    """Return the name of an attack or an access as the page writes it."""
    return shared.words(name, NAMES)
