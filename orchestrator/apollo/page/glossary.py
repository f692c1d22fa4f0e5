"""The terms that an Apollo page explains."""

from __future__ import annotations

GLOSSARY = {
    "Forget set, forgotten point": "Training data that the unlearning method was asked to remove from the model.",
    "Unseen point": "A point of the same kind on which the model was never trained. The attack must tell both apart.",
    "AUC": (
        "Probability that a forgotten point gets a higher score than an unseen one: ½ is chance, 1 is certainty. Here "
        "it is the mean of the AUCs within each target model."
    ),
    "TPR at FPR": (
        "Share of forgotten points that are recognised when a given share of unseen points is wrongly called forgotten."
    ),
    "Promised and found FPR": (
        "The attack fixes its threshold on its own shadow models, before it queries the target, for a promised share "
        "of false alarms. The found rate is measured on unseen points. If it is above the promise, the TPR beside it "
        "must not be quoted; a rate below the promise is on the safe side."
    ),
    "Void": (
        "Shown instead of a TPR, p- or q-value: the promised rate was broken on never-seen points, even after Holm’s "
        "correction, so nothing that rests on it may be quoted. AUC and TPR on the ROC remain valid."
    ),
    "TPR on the ROC": (
        "TPR at the promised FPR with the threshold taken from the unseen points of the other targets: what a "
        "perfectly calibrated attacker would get."
    ),
    "Identity": (
        "Control that unlearns nothing. The attack is then plain membership inference, usually the most one can see."
    ),
    "Retrain": "Control trained from scratch without the forget set: perfect unlearning. No attack may find anything.",
    "Target, shadow model": (
        "Targets are the audited models. Shadows are trained by the attacker, on other data, to learn what forgotten "
        "and unseen points look like."
    ),
    "Interval": (
        "AUC: mean over targets ± Student t. Rates: Clopper–Pearson on the effective sample size. Both allow for "
        "differences between targets. Hover over a number to see the bootstrap or the binomial interval."
    ),
    "Holm’s correction": (
        "All p-values are judged together, so even one false “above chance” is unlikely (at most one audit in twenty "
        "at the 95 % level)."
    ),
    "Exposed point, FDR": (
        "A forgotten point that is found one by one: its p-value, from models that never saw it, passes the Benjamini–"
        "Hochberg rule. The rule bounds the false discovery rate (FDR), the expected share of unseen points among all "
        "points found. The false discovery proportion (FDP) is that share in this run, where the truth is known."
    ),
    "UNDER, OVER": (
        "The two rules of Apollo’s paper. UNDER finds methods that unlearn too little: the decision boundary near a "
        "point moved so little that the label is still right where shadows that never saw the point get it wrong. OVER "
        "finds methods that unlearn too much: the boundary moved too far. To OVER, a point that is still remembered "
        "looks unseen, and the AUC is below ½."
    ),
    "No fit": (
        "Control of the calibrated rule: the same labels, scored by the share of correct ones minus the share that "
        "shadows which never saw the point lead one to expect."
    ),
    "Three groups": (
        "Forgotten, retained (still in the training set) and unseen. Attacks that tell all three apart give a log-odds "
        "for each; the largest decides."
    ),
    "Null": "Not distinguishable from chance with this many points. That does not prove that nothing leaks.",
}


OF_ONE_MODEL = {
    "AUC": "Probability that a forgotten point gets a higher score than an unseen one: ½ is chance, 1 is certainty.",
    "Interval": (
        "Over points and shadows: the variance over points plus that of a jackknife, in which the attack judges again "
        "without each pair of shadows. It says nothing about other models, not even of the same training."
    ),
    "TPR on the ROC": "Not available for a single model: its threshold comes from the unseen points of other targets.",
    "Identity": (
        "Control that unlearns nothing: the given model before unlearning, where it is given too, else a model trained "
        "by the plan on the given model’s members. The attack is then plain membership inference, usually the most one "
        "can see."
    ),
    "Retrain": (
        "Control trained from scratch by the plan on the given model’s members without the forget set: perfect "
        "unlearning. No attack may find anything."
    ),
    "Target, shadow model": (
        "The target is the given model. Shadows are trained and unlearned by the attacker to learn what forgotten and "
        "unseen points look like."
    ),
}
"""What the glossary says otherwise where one given model was audited."""
