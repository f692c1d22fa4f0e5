"""Access to a target model: label-only or posteriors, counted and budgeted."""

from audits.oracles.base import Access, Counter, LabelOracle, PosteriorOracle, label_oracle, posterior_oracle

__all__ = ["Access", "Counter", "LabelOracle", "PosteriorOracle", "label_oracle", "posterior_oracle"]
