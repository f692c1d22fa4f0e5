"""TMIA: membership inference against transfer learning, from labels alone.

Source: Chen, Shangguan, Zhang, Zheng, Zheng, Zhang, Journal on Communications 42(10), 2021.

Reference models never saw the points asked about (candidates). A candidate's statistic under the target is ranked among
those under the reference models; the rank is a p-value of "not a member". One step of the method a file.
"""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.tmia.anomalies": ("Clusters", "k_means", "k_means_streamed"),
        "audits.tmia.answers": ("JUDGED", "Answers", "Labels", "Posteriors", "WhiteBox"),
        "audits.tmia.attacks.base": ("ATTACKS", "Attack", "JudgeSettings", "Ruling"),
        "audits.tmia.attacks.noise_votes": ("NoiseVotes",),
        "audits.tmia.candidate_uniqueness": ("CandidateUniqueness",),
        "audits.tmia.cells": ("scores_rows",),
        "audits.tmia.design": ("MembershipDesign", "MembershipSplit", "make_membership", "other_side"),
        "audits.tmia.p_values": ("rank_p", "smoothed_p"),
        "audits.tmia.reconstruction": ("Map", "Pairs", "make_pairs"),
        "audits.tmia.selectors.base": ("SELECTORS", "Case", "Scores", "Selector", "chosen"),
        "audits.tmia.shared_pool": ("corrected_p",),
    },
)
