"""The process of a job: one command of orch on a node of the cluster, and its results into the log.

``python -m orchestrator.cli.submitted FOLDER COMMAND…`` runs ``orch COMMAND… --out FOLDER``
and ends with its exit code.
"""

from __future__ import annotations

import sys

from actors.interrupts import end_as_by_ctrl_c
from audits.home import expanded
from audits.writing import make_folder
from orchestrator.cli.handover import chosen, packed
from orchestrator.cli.lines import say
from orchestrator.cli.main import main as orch


def main(place: str, *command: str) -> int:
    """Run ``command``, hand over what it left in the folder ``place``, and return the command's exit code."""
    folder = expanded(place)
    make_folder(folder, private=True)
    code = orch([*command, "--out", str(folder)])
    sys.stderr.flush()
    taken, left = chosen(folder)
    for path in left:
        say(f"too large for the job's log, left on the cluster's head: {path}")
    for line in packed(folder, taken):
        say(line)
    return code


if __name__ == "__main__":
    end_as_by_ctrl_c()  # as Ray asks a job to end that is cancelled
    sys.exit(main(*sys.argv[1:]))
