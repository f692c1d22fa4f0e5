"""The command in a process of its own that draws no figures, which takes longest of a small run's work."""

from __future__ import annotations

import sys

from orchestrator.cli.main import main
from orchestrator.report import writing

UNDRAWN = [sys.executable, "-m", "tests.cases.undrawn"]
"""What begins such a command; the repository has to be on the path."""

if __name__ == "__main__":
    writing.draw = lambda makers, folder: {}
    sys.exit(main())
