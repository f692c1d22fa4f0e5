"""Access to a target model: labels, posteriors or logits, counted and budgeted, and searches that ask for labels."""

from audits.lazy import lazily
from audits.queries.access import Access

__all__ = ["Access"]
__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.queries.hop_skip_jump": ("Found", "distances", "distances_of_models"),
        "audits.queries.hop_skip_jump_schedule": ("ABSOLUTE", "PLAIN", "RANK", "Schedule"),
        "audits.queries.oracles": (
            "Counter",
            "LabelOracle",
            "PosteriorOracle",
            "label_oracle",
            "logit_oracle",
            "posterior_oracle",
        ),
        "audits.queries.served.endpoint": ("Endpoint", "mlflow_endpoint"),
        "audits.queries.served.oracles": (
            "HttpLabels",
            "HttpPosteriors",
            "recorded_labels",
            "recorded_logits",
            "recorded_posteriors",
        ),
        "audits.queries.served.patience": ("Pace",),
        "audits.queries.served.reading": ("Reading",),
        "audits.queries.start_points": ("starts_from_pool",),
    },
)
