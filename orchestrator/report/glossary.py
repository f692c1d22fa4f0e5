"""The words of the report, explained to a reader who meets them for the first time."""

from __future__ import annotations

WHO = {
    "labels": "anyone who can send an input to the model and see the predicted class.",
    "posteriors": "anyone who sees the model’s confidence for every class.",
    "weights": "whoever holds the model’s weights.",
}

GLOSSARY = {
    "Forget set, forgotten point": "Training data that the unlearning method was asked to remove from the model.",
    "Unseen point": "A point of the same kind on which the model was never trained. The attack must tell both apart.",
    "AUC": (
        "Probability that a forgotten point gets a higher score than an unseen one: ½ is chance, 1 is certainty. Here "
        "it is the mean of the AUCs within each target model."
    ),
    "TPR at FPR": (
        "Share of forgotten points that are recognised while a given share of unseen points is called forgotten, too."
    ),
    "Promised and found FPR": (
        "The attack fixes its threshold on its own shadow models, before it asks the target, for a promised share of "
        "false alarms; the found one is measured on unseen points. Where they disagree, the TPR beside them must not "
        "be quoted."
    ),
    "TPR on the ROC": (
        "TPR at the promised FPR with the threshold taken from the unseen points of the other targets: what a "
        "perfectly calibrated attacker would get."
    ),
    "Identity": (
        "Control that unlearns nothing: the attack is then plain membership inference, usually the most one can see."
    ),
    "Retrain": "Control trained from scratch without the forget set: perfect unlearning. No attack may see anything.",
    "Target, shadow model": (
        "Targets are the audited models. Shadows are trained by the attacker, on other data, to learn what forgotten "
        "and unseen points look like."
    ),
    "Interval": (
        "AUC: mean over targets ± Student t. Rates: Clopper–Pearson on the effective sample size. Both allow for "
        "differences between targets. Pointing at a number shows the bootstrap or the binomial interval."
    ),
    "Holm’s correction": (
        "The p-values of all rows are judged together, so that even one false “above chance” is unlikely (at most one "
        "audit in twenty at the 95 % level)."
    ),
    "Null": "Not distinguishable from chance with this many points. That is no proof that nothing is there.",
}
