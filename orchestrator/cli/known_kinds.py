"""The kinds of audit for help and completion, without their imports, which take seconds (a test holds it so)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownKind:
    """The embedded default of a kind, and what limits can name in its results.

    ``summary``: metrics of the worst line, ``metrics``: of a named one; ``parts``: of a line's name; ``accesses``:
    within which the worst line can be asked for.
    """

    default_plan: str
    summary: tuple[str, ...]
    metrics: tuple[str, ...]
    parts: tuple[str, ...]
    accesses: tuple[str, ...] = ()

    def limits(self) -> list[str]:
        """Return what can stand before the number of a limit on the worst line."""
        return [*self.summary, *(f"{access}.{metric}" for access in self.accesses for metric in self.summary)]


KNOWN = {
    "apollo": KnownKind(
        "apollo-fashion14",
        ("auc", "tpr", "found_fpr"),
        ("auc", "tpr", "found_fpr", "auc_low", "tpr_low", "found_fpr_low", "roc_tpr"),
        ("unlearner", "attack"),
        ("labels", "posteriors", "logits", "oracle"),
    ),
    "tmia": KnownKind(
        "tmia-fashion14",
        ("precision_low", "auc_low", "precision", "auc"),
        ("precision_low", "auc_low", "precision", "auc", "coverage", "fpr", "null_fpr"),
        ("setting", "selection", "attack"),
        ("labels", "posteriors"),
    ),
    "gnq": KnownKind(
        "gnq-fashion14",
        ("auc", "auc_low", "auc_high"),
        ("auc", "auc_low", "auc_high"),
        ("arm",),
        ("posteriors", "white_box"),
    ),
    "mia": KnownKind(
        "mia-fashion14",
        ("auc", "auc_low", "tpr", "tpr_low", "found_fpr"),
        ("auc", "auc_low", "tpr", "tpr_low", "found_fpr", "auc_high", "null_fpr", "roc_tpr"),
        ("attack",),
        ("labels", "posteriors"),
    ),
    "gnq-target": KnownKind("gnq-target", ("exposed", "bits"), ("exposed", "bits"), ("group",)),
}
LISTS = ("audits", "models", "data", "sweeps", "plans", "attacks", "unlearners", "selectors", "rankings")
"""What ``orch ls`` lists."""


def metrics_help() -> str:
    """Return the metrics of every kind, for the help of ``orch audit``."""
    lines = ["\b", "Metrics of --fail-above, of the worst line, and of one that is named:"]
    for name, kind in KNOWN.items():
        within = f"; within {', '.join(kind.accesses)}" if kind.accesses else ""
        further = [metric for metric in kind.metrics if metric not in kind.summary]
        lines.append(f"  {name}: {', '.join(kind.summary)}{within}")
        place = ".".join(part.upper() for part in kind.parts)
        lines.append(f"    {place}: {', '.join(['the same', *further])}")
    return "\n".join(lines)
