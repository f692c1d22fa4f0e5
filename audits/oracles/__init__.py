"""Access to a target model: labels, posteriors or logits, counted and budgeted."""

from audits.oracles.base import (
    Access,
    Counter,
    LabelOracle,
    PosteriorOracle,
    label_oracle,
    logit_oracle,
    posterior_oracle,
)

__all__ = [
    "Access",
    "Counter",
    "LabelOracle",
    "PosteriorOracle",
    "label_oracle",
    "logit_oracle",
    "posterior_oracle",
]
