"""Rates, areas and intervals: what the scores of an audit are summed up in."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.statistics.conformal": ("decided", "p_values"),
        "audits.statistics.discoveries": ("exposed_points", "family_q_values", "q_values"),
        "audits.statistics.intervals": (
            "clopper_pearson",
            "cluster_bootstrap",
            "cluster_jackknife_t",
            "delong_interval",
            "ibragimov_mueller_t",
        ),
        "audits.statistics.null": ("NullBand", "holm", "null_band", "permutation_p"),
        "audits.statistics.precision": ("Outcome", "Rate", "measure", "measure_null"),
        "audits.statistics.radii": ("radius_intervals",),
        "audits.statistics.rank_correlation": ("spearman",),
        "audits.statistics.roc": ("auc", "tpr_at_fpr", "within_auc"),
        "audits.statistics.summary": ("Cell", "cells", "paired_difference", "per_target_auc", "summarise"),
    },
)
