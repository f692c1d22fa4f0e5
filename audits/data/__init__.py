"""Data sets by name, one file each, and what they are read into."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.data.catalogue": ("describe", "load", "names"),
        "audits.data.classes": ("points_of",),
        "audits.data.dataset": ("Dataset", "Description", "fingerprint"),
        "audits.data.shards": ("write_shards",),
        "audits.data.source": ("CATALOGUE", "Request", "Source"),
        "audits.data.tensors": ("TensorSet",),
    },
)
