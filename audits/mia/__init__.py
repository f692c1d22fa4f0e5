"""Membership inference against an ordinary model: which points of a pool was it trained on?"""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.mia.answers": ("Case", "Distances", "Inputs", "Labels", "Posteriors", "case_of"),
        "audits.mia.attacks.base": ("MIA_ATTACKS", "Attack", "Finding"),
        "audits.mia.canaries": ("canary_labels",),
        "audits.mia.given_pool": ("GivenPool", "draw_given_pool"),
    },
)
