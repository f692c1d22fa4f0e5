"""Names of components on an Apollo page, and the terms that it explains."""

from __future__ import annotations

from orchestrator.report import words as shared

NAMES = {
    "apollo": "Apollo",
    "apollo_offline": "Apollo offline",
    "apollo_no_fit": "Apollo, no fit",
    "apollo_under": "Apollo UNDER",
    "apollo_over": "Apollo OVER",
    "apollo_plus": "Apollo plus",
    "apollo_ladder": "Apollo ladder",
    "boundary_distance": "boundary distance",
    "yoqo": "YOQO",
    "oslo": "OSLO",
    "u_lira": "U-LiRA",
    "u_lira_per_point": "U-LiRA, per point",
    "u_lira_raw_logit": "U-LiRA, raw logit",
    "u_mia": "U-MIA",
    "u_mia_shadow": "U-MIA, shadow",
    "u_mia_oracle": "U-MIA, oracle",
    "ruli": "RULI",
    "bad_teacher": "bad teacher",
    "salun": "SalUn",
    "scrub": "SCRUB",
    "sfr_on": "SFR-on",
    "identity": "identity (control)",
    "retrain": "retrain (control)",
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
        "false alarms; the found one is measured on unseen points. Where it lies above the promise, the TPR beside it "
        "must not be quoted; below is the careful side."
    ),
    "Void": (
        "In the place of a TPR, or of p- and q-values: the promised rate was broken on never-seen points, also after "
        "Holm’s correction, so that nothing that rests on it may be quoted. AUC and TPR on the ROC stand."
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
    "Exposed point, FDR": (
        "A forgotten point that is found one by one: its p-value, from models that never saw it, passes the Benjamini–"
        "Hochberg rule. The rule bounds the false discovery rate (FDR), the expected share of unseen points among all "
        "points found. The false discovery proportion (FDP) is that share in this run, where the truth is known."
    ),
    "UNDER, OVER": (
        "The two rules of Apollo’s paper: the decision boundary near a point moved too little, so that the label is "
        "still right where shadows that never saw the point give it up; or it moved too far. The first finds methods "
        "that unlearn too little, the second those that unlearn too much: a point that is still remembered looks "
        "unseen to it, and its AUC lies below ½."
    ),
    "No fit": (
        "Control of the calibrated rule: the same labels, scored by the share of right ones minus what shadows that "
        "never saw the point expect."
    ),
    "Three groups": (
        "Forgotten, retained (still in the training set) and unseen. Attacks that tell all three apart give a log-odds "
        "for each; the largest decides."
    ),
    "Null": "Not distinguishable from chance with this many points. That is no proof that nothing is there.",
}


OF_ONE_MODEL = {
    "AUC": "Probability that a forgotten point gets a higher score than an unseen one: ½ is chance, 1 is certainty.",
    "Interval": (
        "Over points and shadows: the variance over points plus that of a jackknife, in which the attack judges again "
        "without each pair of shadows. It says nothing about other models, of the same training either."
    ),
    "TPR on the ROC": "Its threshold comes from the unseen points of other targets, of which one model has none.",
    "Identity": (
        "Control that unlearns nothing, a model of the plan’s own on the given one’s members: the attack is then plain "
        "membership inference, usually the most one can see."
    ),
    "Retrain": (
        "Control trained from scratch by the plan on the given model’s members without the forget set: perfect "
        "unlearning. No attack may see anything."
    ),
    "Target, shadow model": (
        "The target is the given model. Shadows are trained and unlearned by the attacker to learn what forgotten and "
        "unseen points look like."
    ),
}
"""What the glossary says otherwise where one given model was audited."""


def words(name: str) -> str:
    """Return a component's name as the report writes it."""
    return shared.words(name, NAMES)


def heading(name: str) -> str:
    """Return a component's name with a capital, without the word control: for headings and axis titles."""
    text = words(name).removesuffix(" (control)")
    return text[0].upper() + text[1:]
