"""Rankings of points for removal, most exposed first: gradient uniqueness and the controls that it must beat.

Sums run over the checkpoints of a ``Trace``, each weighted with the steps it stands for. How well a ranking goes with
what attacks find is measured in docs/results/gnq-exposure.md: sums of GNQ along training lead, at the trained model
alone it does not beat the summed loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from audits.arrays import Floats
from audits.errors import BadInput
from audits.registry import Registry
from audits.seeds import Purpose, derive_seed, numpy_generator
from audits.uniqueness.bits import log_uniqueness

if TYPE_CHECKING:
    from audits.uniqueness.accumulate import Trace

Ranking = Callable[["Trace", int], Floats]
"""(what was seen, seed) → (N,) float64, higher = removed sooner. Only ``random`` reads the seed."""

RANKINGS: Registry[Ranking] = Registry("ranking", "audits.uniqueness", whole=True)


@RANKINGS.register("gnq_log")
def gnq_log(trace: Trace, seed: int) -> Floats:
    """Return gradient uniqueness in bits, summed over the training: the ranking of the shipped plans.

    Σ ½·log2(1 + GNQ) in mode ridge: not clamped at 1, where most points would tie.
    """
    return log_uniqueness(uniqueness(trace, "ridge"), trace.weights)


@RANKINGS.register("gnq_sum")
def gnq_sum(trace: Trace, seed: int) -> Floats:
    """Return gradient uniqueness, summed over the training as it is.

    Σ GNQ in mode ridge, by which arXiv 2510.10902 ranks (there in mode pinv).
    """
    found: Floats = trace.weights @ uniqueness(trace, "ridge")
    return found


@RANKINGS.register("gnq_final")
def gnq_final(trace: Trace, seed: int) -> Floats:
    """Return gradient uniqueness in the trained model alone.

    GNQ in mode ridge.
    """
    found: Floats = uniqueness(trace, "ridge")[-1]
    return found


@RANKINGS.register("pinv_log")
def pinv_log(trace: Trace, seed: int) -> Floats:
    """Return gradient uniqueness in bits, by the pseudo-inverse: the bound of arXiv 2510.10902 as a score.

    Σ ½·log2(1 + GNQ) in mode pinv, not clamped.
    """
    return log_uniqueness(uniqueness(trace, "pinv"), trace.weights)


@RANKINGS.register("pinv_sum")
def pinv_sum(trace: Trace, seed: int) -> Floats:
    """Return gradient uniqueness by the pseudo-inverse, summed as arXiv 2510.10902 ranks.

    Σ GNQ in mode pinv; a gradient orthogonal to all others adds 0.
    """
    found: Floats = trace.weights @ uniqueness(trace, "pinv")
    return found


@RANKINGS.register("diagonal")
def diagonal(trace: Trace, seed: int) -> Floats:
    """Return the size of each gradient beside the scale of all: it finds canaries that the other modes do not.

    Σ ½·log2(1 + D) with the diagonal of S.
    """
    return log_uniqueness(uniqueness(trace, "diagonal"), trace.weights)


@RANKINGS.register("in_batch")
def in_batch(trace: Trace, seed: int) -> Floats:
    """Return gradient uniqueness in bits among the points of each batch, summed over the steps of a point.

    Σ ½·log2(1 + GNQ) in mode ridge, over the steps where the point occurs.

    Fewer others make a value larger a step, and there are fewer steps: not to be compared with ``gnq_log``, only the
    order is.
    """
    if trace.in_batch is None or "ridge" not in trace.in_batch.log:
        raise BadInput(
            "the ranking in_batch reads what was seen within batches; trace with in_batch=True and mode ridge"
        )
    return trace.in_batch.log["ridge"]


@RANKINGS.register("loss_log")
def loss_log(trace: Trace, seed: int) -> Floats:
    """Return the loss in bits, summed over the training: a control that costs nothing and comes close to gnq_log.

    Σ log2(1 + loss).
    """
    return 2 * log_uniqueness(trace.loss, trace.weights)


@RANKINGS.register("gradient_norm_log")
def gradient_norm_log(trace: Trace, seed: int) -> Floats:
    """Return the length of the gradient in bits, summed over the training: gnq_log without the other points.

    Σ log2(1 + ‖g‖²): the control that has the transform of gnq_log and neither the other points nor λ.
    """
    return 2 * log_uniqueness(trace.squared_norm, trace.weights)


@RANKINGS.register("loss_sum")
def loss_sum(trace: Trace, seed: int) -> Floats:
    """Return the loss, summed over the training: the control of gnq_sum.

    Σ loss.
    """
    found: Floats = trace.weights @ trace.loss
    return found


@RANKINGS.register("gradient_norm_sum")
def gradient_norm_sum(trace: Trace, seed: int) -> Floats:
    """Return the squared length of the gradient, summed over the training: gnq_sum without the other points.

    Σ ‖g‖²: the control of gnq_sum that has neither the other points nor λ.
    """
    found: Floats = trace.weights @ trace.squared_norm
    return found


@RANKINGS.register("final_loss")
def final_loss(trace: Trace, seed: int) -> Floats:
    """Return the loss of the trained model."""
    found: Floats = trace.loss[-1]
    return found


@RANKINGS.register("gradient_norm")
def gradient_norm(trace: Trace, seed: int) -> Floats:
    """Return the squared length of the gradient in the trained model.

    ‖g‖².
    """
    found: Floats = trace.squared_norm[-1]
    return found


@RANKINGS.register("twin_loss")
def twin_loss(trace: Trace, seed: int) -> Floats:
    """Return the loss of each point under the twin, a model of other points: the control that costs nothing more."""
    return other_models(trace.twin_loss, "the twin's loss", "give the twin's answers")


@RANKINGS.register("held_out_loss")
def held_out_loss(trace: Trace, seed: int) -> Floats:
    """Return the mean loss of each point under models trained without it: the control that costs what GNQ costs."""
    return other_models(trace.held_out_loss, "the loss under models without the point", "train some (audit.held_out)")


def other_models(values: Floats | None, words: str, remedy: str) -> Floats:
    """Return what other models say of the points (N,); BadInput where none was asked."""
    if values is None:
        raise BadInput(f"the ranking reads {words}, which this trace does not hold; {remedy}")
    return values


def readable(name: str, trace: Trace) -> bool:
    """Say whether ``trace`` holds what the ranking ``name`` reads beside modes of GNQ."""
    needs = {"in_batch": trace.in_batch, "twin_loss": trace.twin_loss, "held_out_loss": trace.held_out_loss}
    return name not in needs or needs[name] is not None


@RANKINGS.register("random")
def random(trace: Trace, seed: int) -> Floats:
    """Return uniform random numbers: what removal does by itself, whatever is removed."""
    found: Floats = numpy_generator(derive_seed(seed, Purpose.RANDOM_RANKING)).random(trace.loss[0].shape)
    return found


def uniqueness(trace: Trace, mode: str) -> Floats:
    """Return GNQ (S, N) of a mode; BadInput when the trace was made without it."""
    if mode not in trace.gnq:
        raise BadInput(
            f"the ranking reads mode {mode!r}, the trace has {', '.join(trace.gnq) or 'none'}; add it to modes"
        )
    return trace.gnq[mode]
