"""Words that the pages of several audits share: names of components, rankings and levels of access."""

from __future__ import annotations

from collections.abc import Mapping

COMPONENTS = {
    "lira": "LiRA",
    "lira_offline": "LiRA offline",
    "rmia": "RMIA",
    "labels": "Labels only",
    "posteriors": "Posteriors",
    "logits": "Logits",
    "gradients": "Gradients",
    "weights": "Weights",
    "oracle": "Oracle",
}


def words(name: str, own: Mapping[str, str]) -> str:
    """Return a component's name as a page writes it: by the page's ``own`` names, else as all pages do."""
    return own.get(name) or COMPONENTS.get(name) or name.replace("_", " ")


def shared_words(name: str) -> str:
    """Return a component's name as all pages write it."""
    return words(name, {})


RANKINGS = {
    "gnq_log": "GNQ",
    "gnq_sum": "GNQ, plain sum",
    "gnq_final": "final GNQ",
    "pinv_log": "pinv GNQ",
    "pinv_sum": "pinv GNQ, plain sum",
    "diagonal": "diagonal GNQ",
    "in_batch": "GNQ in batch",
    "loss_log": "loss",
    "gradient_norm_log": "‖g‖²",
    "loss_sum": "loss, plain sum",
    "gradient_norm_sum": "‖g‖², plain sum",
    "final_loss": "final loss",
    "gradient_norm": "final ‖g‖²",
    "twin_loss": "twin’s loss",
    "held_out_loss": "held-out loss",
    "random": "at random",
}


def ranking_words(name: str) -> str:
    """Return the name of a ranking as the report writes it."""
    return RANKINGS.get(name, name.replace("_", " "))


WHO = {
    "labels": "anyone who can send an input to the model and see the predicted class (labels).",
    "posteriors": "anyone who sees the model’s confidence for every class (posteriors).",
    "logits": "whoever sees the model’s raw outputs before the softmax (logits).",
    "gradients": "whoever can differentiate through the model.",
    "weights": "whoever holds the model’s weights.",
    "oracle": "nobody: it knows which other points were forgotten. A bound for comparison, not an attack; its "
    "thresholds are read off the judged points, so its found rates mean nothing.",
}
"""Access levels from the weakest to the strongest, and who has them."""


def access_level(access: str) -> int:
    """Return the rank of an access level, weakest first; unknown ones come last."""
    return list(WHO).index(access) if access in WHO else len(WHO)
