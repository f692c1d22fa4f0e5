"""The command line. Whoever starts it may stand in a folder of somebody else's: no module there is imported."""

import sys

from orchestrator.cli.own_packages import misplaced

if wrong := misplaced():
    print(f"orch: {wrong}", file=sys.stderr)  # noqa: T201  # before Click may be imported
    sys.exit(2)

from audits.own.import_path import leave_out_working_folder  # another's `audits` has no such module
from audits.own.libraries import guard_imports

leave_out_working_folder()
guard_imports()
