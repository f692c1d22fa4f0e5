"""Scores that more than one audit uses, each written once."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.signals.confidence": ("of_true_class", "scaled"),
        "audits.signals.likelihood_ratio": ("gaussian", "log_likelihood_ratio", "moments", "surprise"),
        "audits.signals.loss": ("log_loss", "losses", "minus_loss"),
        "audits.signals.rmia": ("dominance", "evidence_of"),
    },
)
