"""Training one model: from scratch, privately (DP-SGD), or from a teacher."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.training.accounting": ("delta_of", "noise_of", "spent", "spent_epsilon", "steps_per_epoch"),
        "audits.training.fit": ("train_model",),
        "audits.training.loop": ("EpochReport", "Observer", "accuracy", "logits"),
        "audits.training.private": ("check_private", "fit_private"),
        "audits.training.recipe": ("Recipe",),
        "audits.training.stacked": ("fit_stacked",),
        "audits.training.team": ("Team",),
        "audits.training.transfer": ("student_of", "teacher_from", "train_student"),
    },
)
