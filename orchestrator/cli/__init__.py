"""The command line. Whoever starts it may stand in a folder of somebody else's: no module there is imported."""

import sys

from audits.own.import_path import leave_out_working_folder, misplaced

leave_out_working_folder()
if wrong := misplaced():
    print(f"orch: {wrong}", file=sys.stderr)  # noqa: T201  # before Click may be imported
    sys.exit(2)
