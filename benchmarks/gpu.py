"""All that is to be measured on a GPU, in some ten minutes: ``make gpu``, or

    python -m benchmarks.gpu                     # every part, the tables on the terminal, the record in gpu.json
    python -m benchmarks.gpu --docs docs/results/benchmarks.md          # and in their places there
    python -m benchmarks.gpu --quick --pretend   # without a GPU: the same parts, tiny, on a pretended one

Each part is a process of its own with a limit of time: one that fails or takes too long is named at the end, and the
others are measured all the same. Needs torch and NumPy; the part ``tests`` needs pytest and hypothesis, ``gnq gram``
Opacus, and each is left out with a line where they are missing. Neither Ray nor MLflow is needed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.record import SCHEMA, environment, markers, replace_section

ROOT = Path(__file__).resolve().parents[1]
PRETENDED = "benchmarks.pretended_run"
SLOWER = 5
"""How much longer a part may take where the GPU is pretended: every call goes through Python."""
ENDED, FAILED, TOO_LONG, LEFT_OUT = "ended", "failed", "took too long", "left out"


@dataclass(frozen=True)
class Part:
    """One command: a module, its arguments on a GPU (``--quick`` is added on request) and its limit in seconds.

    ``needs``: packages without which it is left out. ``measures``: it prints a benchmark's record; what does not is
    left out where the GPU is pretended.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    limit: int
    needs: tuple[str, ...] = ()
    measures: bool = True

    def command(self, quick: bool, pretend: bool, record: Path) -> list[str]:
        """Return the command line; its record goes to the file ``record``."""
        words = [sys.executable, "-m", *([PRETENDED] if pretend else []), self.module, *self.arguments]
        if self.measures:
            words += ["--json", str(record), "--markdown"] + ["--quick"] * quick
        return words

    @property
    def missing(self) -> list[str]:
        """The packages that it needs and that are not there."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def files_of_gpu_tests() -> Iterator[str]:
    """Yield the files with tests that are marked ``gpu``: others import Ray, which may be missing."""
    for folder in ("audits", "benchmarks"):
        for file in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            if "pytest.mark.gpu" in file.read_text():
                yield str(file.relative_to(ROOT))


# conftest.py is about Ray
TESTS = ("-q", "-m", "gpu", "--noconftest", "-p", "no:cacheprovider", *files_of_gpu_tests())
ON_CUDA = ("--device", "cuda")
PARTS = (
    Part("tests", "pytest", TESTS, 240, ("pytest", "hypothesis", "pytest_timeout"), measures=False),
    Part("apollo_search", "benchmarks.apollo_search", (*ON_CUDA, "--repeats", "3"), 120),
    Part("apollo_search paper-size", "benchmarks.apollo_search", (*ON_CUDA, "--paper-size"), 240),
    Part("gnq gram", "benchmarks.gnq", (*ON_CUDA, "--part", "gram", "--repeats", "3"), 120, ("opacus",)),
    Part("anomalies", "benchmarks.anomalies", ON_CUDA, 60),
    Part("recorded", "benchmarks.recorded", (), 120),
    Part("paper_hours", "benchmarks.paper_hours", ON_CUDA, 240),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; see the module's text. Return 0 when all that could run ended, 2 without a GPU, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="PART", help="these parts: " + ", ".join(p.name for p in PARTS))
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: shows that it works, the numbers mean nothing"
    )
    parser.add_argument("--pretend", action="store_true", help="on a pretended GPU; needs --quick")
    parser.add_argument("--json", type=Path, default=Path("gpu.json"), metavar="FILE", help="(default gpu.json)")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="put the tables between their markers in FILE")
    options = parser.parse_args(arguments)
    parts = [part for part in PARTS if options.only is None or part.name in options.only]
    if unknown := set(options.only or ()) - {part.name for part in PARTS}:
        parser.error(f"--only {min(unknown)!r}: allowed are {', '.join(part.name for part in PARTS)}")
    if options.pretend and not options.quick:
        parser.error("--pretend tells nothing about speed; give --quick as well")
    if options.docs and options.quick:
        parser.error("--docs is for numbers that mean something; leave out --quick")
    if not options.pretend and not gpu_here():
        print(
            "torch finds no GPU here; python -m benchmarks.gpu --quick --pretend shows that all runs without one",
            file=sys.stderr,
        )
        return 2
    record = {
        "schema": SCHEMA,
        "benchmark": "gpu",
        "command": "python -m benchmarks.gpu" + " --quick" * options.quick + " --pretend" * options.pretend,
        "environment": environment("cpu" if options.pretend else "cuda", 1),
        "parts": [shown(result) for result in ran(parts, options.quick, options.pretend)],
    }
    options.json.write_text(json.dumps(record, indent=1) + "\n")
    if options.docs:
        fill(options.docs, record)
    print(f"record: {options.json}")
    return 0 if all(part["state"] in (ENDED, LEFT_OUT) for part in record["parts"]) else 1


def gpu_here() -> bool:
    """Return whether torch finds a GPU."""
    import torch

    return torch.cuda.is_available()


def ran(parts: Sequence[Part], quick: bool, pretend: bool) -> Iterator[dict[str, Any]]:
    """Yield what became of each part: ``name``, ``state``, ``seconds``, ``said`` and its ``record`` if it has one."""
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(parts):
            if part.missing or (pretend and not part.measures):
                said = f"needs {', '.join(part.missing) or 'a GPU'}"
                yield {"name": part.name, "state": LEFT_OUT, "seconds": 0.0, "said": said, "record": None}
                continue
            place = Path(folder) / f"{number}.json"
            began = time.perf_counter()
            state, said = one(part.command(quick, pretend, place), part.limit * (SLOWER if pretend else 1))
            record = json.loads(place.read_text()) if state == ENDED and part.measures else None
            yield {
                "name": part.name,
                "state": state,
                "seconds": round(time.perf_counter() - began, 1),
                "said": said,
                "record": record,
            }


def one(command: Sequence[str], limit: int) -> tuple[str, str]:
    """Run a command for at most ``limit`` seconds; return its state and what it said."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return TOO_LONG, f"over {limit} s"
    if done.returncode == 0:
        return ENDED, done.stdout
    return FAILED, f"exit code {done.returncode}\n" + done.stdout[-2000:] + done.stderr[-2000:]


def shown(result: dict[str, Any]) -> dict[str, Any]:
    """Print what became of a part, and return it."""
    print(f"== {result['name']}: {result['state']}, {result['seconds']:.0f} s\n{result['said'].strip()}\n", flush=True)
    return result


def fill(file: Path, record: dict[str, Any]) -> None:
    """Put the tables of all parts between their markers in ``file``; parts without a place there are named."""
    text = file.read_text()
    for part in record["parts"]:
        if part["record"] is None:
            continue
        section = part["record"]["section"]
        if markers(section)[0] not in text:
            print(f"{part['name']}: {file} has no place for {section!r}")
            continue
        text = replace_section(text, section, part["said"].strip())
    file.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
