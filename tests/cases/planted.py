"""A working folder of somebody else: modules that leave a line where they are imported, under names that all import."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("actors", "audits", "orchestrator", "tune_spaces")
OTHERS = """
asyncio click cloudpickle conftest fsspec google grpc json matplotlib mlflow multiprocessing numpy packaging pandas
pickle psutil pyarrow pydantic queue ray requests safetensors scipy setproctitle signal sitecustomize sklearn sqlite3
threading torch usercustomize yaml
"""
PLANTED = """import os, sys
with open({file!r}, "a") as file:
    print({name!r}, os.getpid(), sys.orig_argv[:3], file=file)
raise ImportError("planted")
"""
LIBRARY = """#include <stdio.h>
__attribute__((constructor)) static void begin(void) {{
    FILE *file = fopen("{file}", "a");
    fputs("{name}\\n", file);
    fclose(file);
}}
"""
SCRIPT = "import sys\nfrom orchestrator.cli.main import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


def installed() -> list[str]:
    """Return the names of which there is an installed module; for others a folder of one's own code is looked into.

    Modules that Ray brings along are found in processes that have imported it, and are none.
    """
    path = [entry for entry in sys.path if "thirdparty_files" not in entry]
    return [name for name in (*OTHERS.split(), *OURS) if PathFinder.find_spec(name, path)]


def plant(folder: Path, *names: str) -> Path:
    """Plant modules in ``folder``, all by default; return the file that tells who imported one."""
    file = folder.parent / "imported"
    folder.mkdir(exist_ok=True)
    for name in names or (*OTHERS.split(), *OURS):
        (folder / f"{name}.py").write_text(PLANTED.format(file=str(file), name=name))
    return file


def library(folder: Path, name: str) -> Path:
    """Plant a shared library in ``folder``; return the file, that of ``plant``, that tells who loaded it."""
    file = folder.parent / "imported"
    source = LIBRARY.format(file=file, name=name).encode()
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", str(folder / name), "-"], input=source, check=True)
    return file


def command(place: Path) -> list[str]:
    """Return the start of a command line as pip installs it: a script in a folder of its own."""
    script = place / "bin" / "orch"
    script.parent.mkdir(exist_ok=True)
    script.write_text(SCRIPT)
    return [sys.executable, str(script)]


def run(words: list[str], folder: Path, path: str = str(ROOT), **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder`` with a Python path and further ``variables``."""
    surroundings = {**os.environ, "PYTHONPATH": path, **variables}
    surroundings.pop("PYTHONSAFEPATH", None)
    return subprocess.run(words, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
