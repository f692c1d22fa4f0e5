"""The common part of every benchmark's record: where it ran, the numbers in the middle, and its place in the docs."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "orch.benchmark/1"


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a record goes; see ``write``."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record to FILE as well")
    parser.add_argument("--markdown", action="store_true", help="print the tables instead of the JSON record")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="put the tables between their markers in FILE")


def write(record: Mapping[str, Any], tables: str, options: argparse.Namespace) -> None:
    """Print ``record`` as JSON, or its ``tables`` with ``--markdown``; fill the files that the options name."""
    text = json.dumps(record, indent=1)
    if options.json:
        options.json.write_text(text + "\n")
    section = f"{markers(record['section'])[0]}\n{tables}\n{markers(record['section'])[1]}"
    if options.docs:
        options.docs.write_text(replace_section(options.docs.read_text(), record["section"], section))
    print(section if options.markdown else text)


def markers(section: str) -> tuple[str, str]:
    """Return the lines between which the tables of ``section`` stand in a Markdown file."""
    return f"<!-- begin: {section} -->", f"<!-- end: {section} -->"


def replace_section(text: str, section: str, new: str) -> str:
    """Return ``text`` with everything from the begin marker to the end marker of ``section`` replaced by ``new``.

    Raises ``SystemExit`` with one line when the markers are not there, once each and in order.
    """
    begin, end = markers(section)
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed or begin in rest or end in tail or end in head:
        raise SystemExit(f"the file must have the lines {begin} and {end}, once each and in this order")
    return head + new + tail


def environment(device: str, threads: int) -> dict[str, Any]:
    """Return what decides speed besides the code. ``load_average`` is that of the last minute: above 0.5 or so at the
    start of a run, something else was using the machine."""
    import torch

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else processor(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads,
        "load_average": round(os.getloadavg()[0], 2),
    }


def processor() -> str:
    """Return the processor's own name where the system tells it."""
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip() not in ("", "unknown"):
                return value.strip()
    return platform.processor() or platform.machine()


def described(record: Mapping[str, Any]) -> str:
    """Return the lines above a table: the command and where and under which load it ran."""
    at = record["environment"]
    return (
        f"`{record['command']}`: {at['device']} ({at['cpus']} CPUs), {at['threads']} thread(s), {at['system']}, "
        f"Python {at['python']}, torch {at['torch']}, {record['repeats']} repeat(s), load average "
        f"{at['load_average']:.2f} at the start and {record['load_average_at_end']:.2f} at the end.\n"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def median(values: Sequence[float]) -> float:
    """Return the median, rounded to four digits."""
    return rounded(statistics.median(values))


def rounded(value: float) -> float:
    """Return ``value`` with four significant digits."""
    return float(f"{value:.4g}")


def number(value: float) -> str:
    """Return ``value`` for a reader: three significant digits, thousands set apart."""
    return f"{float(f'{value:.3g}'):,.0f}".replace(",", " ") if abs(value) >= 100 else f"{value:.3g}"
