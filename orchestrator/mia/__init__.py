"""The membership audit of an ordinary model: plan, jobs, stages, result and page."""
