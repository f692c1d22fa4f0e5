"""One run, from the plan to the report: workers, progress, gate, tracking."""
