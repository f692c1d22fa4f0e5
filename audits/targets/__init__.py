"""Models that a user brings, trained elsewhere: their weights, and the points that they were trained on."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.targets.blind": ("Blind", "blind_test"),
        "audits.targets.members": ("read_members",),
        "audits.targets.weights": ("Weights", "read_weights", "with_weights"),
    },
)
