"""Folders in the root of a store that hold no artefacts."""

from __future__ import annotations

from typing import Final

RUNS: Final = "runs"
"""Records of runs."""
PROBES: Final = "probes"
"""Files that drivers leave for their workers to find."""
CLAIMS: Final = "claims"
"""Who does which job just now."""
INDEX: Final = "index"
"""Keys that are known to be there, stage by stage."""
ANSWERS: Final = "answers"
"""What served models answered, a folder for each."""
CHECKPOINTS: Final = "checkpoints"
"""Trainings of jobs that are not done, a folder for each."""

NO_STAGES: Final = (RUNS, PROBES, CLAIMS, INDEX, ANSWERS, CHECKPOINTS)
