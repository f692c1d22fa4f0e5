"""The terms that a membership page explains."""

from __future__ import annotations

GLOSSARY = {
    "Member, non-member": (
        "A point of a pool that the target was trained on, and one that it was not. Each target trained on a random "
        "half of its pool, so both are of one kind."
    ),
    "AUC": (
        "Probability that a member gets a higher score than a non-member: ½ is chance, 1 is certainty. Here it is the "
        "mean of the AUCs within each target."
    ),
    "TPR": "Share of members that are called members at the threshold fixed for the promised false-positive rate.",
    "Promised and found FPR": (
        "Thresholds are fixed for a promised share of false alarms, on shadows that play the target or on known "
        "non-members, never on judged points. The found rate is the share of the targets’ non-members called members."
    ),
    "FPR on null models": (
        "The same share for models that saw no point of the pool (targets of other pools), where every call is false."
    ),
    "Void": (
        "Shown instead of a TPR, the worth of a call, a p- or a q-value: a promised rate was broken, even after Holm’s "
        "correction, so nothing that rests on it may be quoted. AUC and TPR on the ROC remain valid."
    ),
    "Worth of a call": (
        "Share of “member” calls that are right if a share π of the points in question are members: π·TPR/(π·TPR + "
        "(1 − π)·FPR) at the rates found. Brackets combine the ends of both intervals."
    ),
    "Canary": (
        "A point planted with a wrong label: a model that fits it has memorised it. The positive control: an attack "
        "that does not find canaries has no power, and its null result says nothing. Decisions do not rest on canaries."
    ),
    "Pool, twins": (
        "A pool is 2n points that no model outside the pool trains on. Two targets and the shadows are trained on "
        "halves of it, in twins of complementary halves. Intervals are over pools, which share no model and no point."
    ),
    "Shadow": (
        "A model that the attacker trains like a target, on known points. Pairs of twins are left out in turn: a fit "
        "to the rest judges the target and, as its null, the points that the left-out twins never saw."
    ),
    "Stranger": (
        "A shadow of another pool, which saw no point of this one. A point is called a member only if the nulls of "
        "both twins and strangers allow it, so promised rates hold whether a target shares the pool or was trained on "
        "other data."
    ),
    "Known non-member": (
        "A point outside all pools, of which the attacker knows that no target saw it. Attacks without shadows take "
        "their threshold from such points, assuming that they are drawn like the pool’s."
    ),
    "Lower bound on ε": (
        "The attack guesses which of two matched points a target was trained on. So many right guesses would be too "
        "unlikely if training were (ε, δ)-differentially private with a smaller ε. The bound holds for this recipe and "
        "these points, whatever the attack. It is no upper bound."
    ),
    "p and q": (
        "p: how rarely a point that a model did not train on scores as high. q: the lowest false discovery rate at "
        "which the point is still found (Benjamini and Hochberg)."
    ),
    "Recognised by shadows": (
        "Of the shadows trained on the point, the share in which it scores above 99 % of non-members when the fit has "
        "not seen them. A high share means that the point is exposed in other trainings too, not just in this one."
    ),
}

OF_POOLS = ("Member, non-member", "FPR on null models", "Canary", "Pool, twins", "Stranger")
"""Terms of plans that train their targets."""
