"""The command in a process of its own that draws no figures, which takes longest of a small run's work."""

from __future__ import annotations

import sys

from orchestrator.cli.main import main
from orchestrator.compared.page import page as compared
from orchestrator.report import writing
from orchestrator.scored.page import page as scored

DRAWING = (writing, scored, compared)
"""The modules by whose ``draw`` pages get their figures."""
UNDRAWN = [sys.executable, "-m", "tests.cases.undrawn"]
"""What begins such a command; the repository has to be on the path."""

if __name__ == "__main__":
    for module in DRAWING:
        module.draw = lambda makers, folder: {}
    sys.exit(main())
