"""The command in a process of its own that draws no figures, which takes longest of a small run's work."""

from __future__ import annotations

import sys
from unittest.mock import patch

from orchestrator.cli.main import main

DRAWING = ("orchestrator.report.writing", "orchestrator.compared.page.page", "orchestrator.scored.page.page")
"""The modules by whose ``draw`` pages get their figures; two of them import Matplotlib."""
UNDRAWN = [sys.executable, "-m", "tests.cases.undrawn"]
"""What begins such a command; the repository has to be on the path."""

if __name__ == "__main__":
    for name in DRAWING:
        patch(f"{name}.draw", lambda makers, folder: {}).start()
    sys.exit(main())
