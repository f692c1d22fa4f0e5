"""Per-point gradients and their Gram matrix, layer by layer."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.gradients.gram": ("from_rows", "gradients", "gram_rows", "row_shards", "squared_norms"),
        "audits.gradients.layers.base": ("LAYERS", "LayerRule", "OuterRule", "rule_of"),
        "audits.gradients.validate": ("check_auditable", "made_auditable"),
        "audits.gradients.white_box": ("white_box_features",),
    },
)
