"""orch from Python: ``audit``, ``sweep`` and ``Report`` (``orchestrator.api``), imported when they are first read."""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {"orchestrator.api.report": ("Figure", "Report"), "orchestrator.api.runs": ("audit", "sweep")},
)
