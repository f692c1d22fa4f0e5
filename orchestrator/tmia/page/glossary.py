"""Names of modes and groups of models on a TMIA page, and the terms that it explains."""

from __future__ import annotations

MODES = {
    "I": "asks the teacher who was in the teacher’s training set",
    "II": "asks the student who was in the teacher’s training set",
    "III": "asks the student who was in the student’s training set",
}

GROUPS = {
    "target": "targets",
    "null": "null models",
    "reference": "reference models",
    "control": "controls",
    "overfitted": "over-fitted models",
}

GLOSSARY = {
    "Target": "An audited model. Each was trained on exactly half of the candidates, so the truth is known.",
    "Candidate, pair": (
        "A candidate is a point whose membership is in question. A pair is one candidate and one target: a member pair "
        "if the target trained on it. Every candidate is a member of half of the targets, so half of all pairs are "
        "member pairs."
    ),
    "Reference model": (
        "Trained by the attacker like a target, on the attacker’s own data (the paper’s contrast model). It never saw "
        "a candidate, so it shows what a candidate looks like to a model that did not train on it."
    ),
    "Null model": (
        "The control. Trained like a target, but never saw a candidate, so every “member” call is false. The "
        "false-positive rate must agree with the level β."
    ),
    "Over-fitted model": (
        "The positive control. Trained on half of the candidates and nothing else, each again and again, so that it "
        "memorises them. An attack that does not find them has no power, and its null result says nothing."
    ),
    "p-value, β": (
        "Share of the reference models to which a candidate looks at least as familiar as to the target. A candidate "
        "is called a member if p ≤ β. Reference models share one pool of points and are more alike than models of "
        "other points; p-values allow for that, unless audit.pool_correction is false. Ranks come in steps, so the "
        "attained level can be a little below β."
    ),
    "Selection, Q": (
        "The candidates that an attack decides about; for the others it makes no decision. Chosen from reference "
        "models alone, never from a target. Label-only attacks query some candidates only; Q counts those."
    ),
    "Random sample": (
        "No selection: random candidates, all queried with labels only. “All candidates” are all of them, queried for "
        "posteriors."
    ),
    "Precision": "Of the pairs called members, the share that are. Chance: the share of member pairs, here one half.",
    "Coverage": "Of the member pairs attacked, the share that are called members. Points outside Q do not count.",
    "FPR": "Of the pairs attacked that are not members, the share that are called members.",
    "Undefined": "0/0: no pair was called a member, so there is no precision. This is not a precision of zero.",
    "AUC": (
        "Probability that a member’s score exceeds a non-member’s, mean over targets of the AUC within each; ½ is "
        "chance. Its interval allows for differences between targets, not for other reference models."
    ),
    "Interval": (
        "Targets, candidates and reference models are resampled together, with the selection fixed. Hover over a "
        "number to see the narrower interval that lets only the targets vary."
    ),
    "Signed distance": (
        "How much noise HopSkipJump must add until the predicted class changes, found from labels alone. Negative if "
        "the model already predicts a class other than y*."
    ),
    "y*": "The class whose confidence is read: the true label, or each model’s own predicted class.",
    "Normal fit": "Training and test accuracy at most five points apart. A wider gap is called over-fitted.",
    "Null": "Not above chance in this run. This does not prove safety; the text says what the run could have missed.",
}
