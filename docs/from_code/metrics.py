"""The page of the numbers that limits of ``--fail-above`` can name."""

from __future__ import annotations

from docs.from_code.text import code, page, prose, table
from orchestrator.kinds import KINDS, kind_named

PLACE = "reference/metrics.md"


def pages() -> dict[str, str]:
    """Return the page by its place in the documentation."""
    blocks = []
    for name in KINDS:
        headline = kind_named(name).headline
        line = ".".join(part.upper() for part in headline.parts)
        rows = [
            (code(metric), code(metric) if metric in headline.summary else "", code(f"{line}.{metric}"))
            for metric in headline.metrics
        ]
        access = ", ".join(code(f"{each}.METRIC") for each in headline.accesses)
        blocks += [
            f"## {name}",
            prose(kind_named(name).question),
            table(("metric", "of the worst line", "of one line"), rows),
            f"Within an access, weaker ones included: {access}." if access else "",
            f"For example `--fail-above {headline.example}`.",
        ]
    return {
        PLACE: page(
            "Metrics of the gate",
            "`orch audit KIND --fail-above LIMIT` holds a result to limits "
            "([how to use it](../how-to/ci.md), [how it decides](result.md#the-gate)). These are the numbers that "
            "limits can name; what each of them means stands with the table of the kind in "
            "[the fields of result.json](result.md).",
            *blocks,
        )
    }
