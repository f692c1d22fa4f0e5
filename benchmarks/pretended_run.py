"""Run a module as a command where the GPU is pretended: ``python -m benchmarks.pretended_run MODULE [ARGUMENTS]``.

What it prints about time and memory means nothing; that it ends, and computes on one device alone, does.
"""

from __future__ import annotations

import runpy
import sys

from benchmarks.pretended.cuda import pretended


def main() -> None:
    """Run the module that the first argument names with the others."""
    if len(sys.argv) < 2:
        raise SystemExit("give a module and its arguments, for example benchmarks.gnq --device cuda --quick")
    del sys.argv[0]
    with pretended():
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
