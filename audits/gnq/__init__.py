"""GNQ (arXiv 2510.10902): what a published model discloses about each point, and removal against DP-SGD."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.gnq.answers": ("GROUPS", "GroupAuc", "PoolAnswers", "compared"),
        "audits.gnq.attacks.base": ("POOL_ATTACKS", "PoolAttack"),
        "audits.gnq.canaries": ("CANARIES", "canary_ranks", "planted"),
        "audits.gnq.gradient_inversion.gradients": ("point_gradients",),
        "audits.gnq.gradient_inversion.labels": ("inferred_labels",),
        "audits.gnq.gradient_inversion.matching": ("Reconstruction", "reconstruct"),
        "audits.gnq.gradient_inversion.settings": ("GradientInversionSettings",),
        "audits.gnq.inversion": ("Inversion", "Likeness", "compare", "invert"),
        "audits.gnq.inversion_settings": ("InversionSettings",),
        "audits.gnq.noise": ("fit_noised", "noise_scale"),
        "audits.gnq.onion": ("Onion", "exposure"),
        "audits.data.pools": ("Pools", "draw_pools"),
        "audits.gnq.removal": ("group_aucs", "two_sided_auc"),
        "audits.gnq.triage": ("bin_aucs", "loss_gap", "vulnerability"),
        "audits.data.twins": ("Twins", "draw_twins"),
        "audits.gnq.kept": ("kept_points",),
    },
)
