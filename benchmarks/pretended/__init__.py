"""A pretended CUDA device: values on the CPU behind the manners of cuda:0, for code that has met no GPU yet.

Tensors made or moved there report ``cuda:0``, refuse to meet tensors of the CPU as CUDA does, and compute on the CPU,
so that results are real. Launches, synchronisations with the host and copies from it are counted by the line of the
project that caused them. No time can be told from it, nor the rounding of a GPU's kernels.

    with pretended() as counts:
        model.cuda()(x.cuda())
    counts.launches.total(), counts.syncs, counts.copies
"""

from benchmarks.pretended.counts import Counts
from benchmarks.pretended.cuda import pretended
from benchmarks.pretended.tensor import Mixed, OnDevice

__all__ = ["Counts", "Mixed", "OnDevice", "pretended"]
