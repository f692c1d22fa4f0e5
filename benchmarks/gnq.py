"""Gradient uniqueness: closed forms and engines against the plain way, part by part, as ratios within one run.

    python -m benchmarks.gnq                              # all parts that the device allows, one after the other
    python -m benchmarks.gnq --part uniqueness            # all N values against one pseudo-inverse a point; minutes
    python -m benchmarks.gnq --part gram                  # the Gram matrix against gradients point by point; minutes
    python -m benchmarks.gnq --part gram --device cuda    # ResNet-18, N = 1 024
    python -m benchmarks.gnq --part uniqueness --quick    # shows that it works; the numbers mean nothing

Each part is a module of its own that measures and draws its table. Needs torch and NumPy only, ``gram`` Opacus too.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import gnq_gram, gnq_uniqueness
from benchmarks.record import SCHEMA, add_output_options, environment, write


@dataclass(frozen=True)
class Part:
    """``measure(quick, repeats, device, threads)`` returns what joins the record, ``tables(record)`` it as Markdown."""

    measure: Callable[[bool, int, str, int], dict[str, Any]]
    tables: Callable[[dict[str, Any]], str]
    devices: tuple[str, ...]


PARTS = {
    "gram": Part(gnq_gram.measure, gnq_gram.tables, ("cpu", "cuda")),
    "uniqueness": Part(
        lambda quick, repeats, device, threads: gnq_uniqueness.measure(quick, repeats), gnq_uniqueness.tables, ("cpu",)
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gnq", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", choices=sorted(PARTS), help="what to measure (default: all that the device allows)")
    parser.add_argument("--device", default="cpu", help="cpu (default), or for gram cuda or cuda:N")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works")
    parser.add_argument("--repeats", type=int, help="rounds of all forms (default 5, with --quick 1)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    repeats = (1 if options.quick else 5) if options.repeats is None else options.repeats
    for name, value in (("repeats", repeats), ("threads", options.threads)):
        if value < 1:
            parser.error(f"--{name} {value}: give 1 or more")
    kind = options.device.partition(":")[0]
    parts = [name for name, part in PARTS.items() if options.part in (None, name) and kind in part.devices]
    if not parts:
        known = sorted(
            {device for name in ([options.part] if options.part else PARTS) for device in PARTS[name].devices}
        )
        parser.error(f"--device {options.device}: {options.part or 'every part'} runs on {' or '.join(known)}")
    if kind == "cuda" and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: torch finds no GPU here; use --device cpu")
    if options.json and len(parts) > 1:
        parser.error(f"--json holds the record of one part; choose one of {', '.join(parts)} by --part")
    torch.set_num_threads(options.threads)
    for name in parts:
        run(name, options, repeats)


def run(name: str, options: argparse.Namespace, repeats: int) -> None:
    """Measure one part, and print or write its record."""
    part, device = PARTS[name], options.device
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "gnq",
        "section": f"gnq {name} {device.partition(':')[0]}",
        "command": " ".join(["python -m benchmarks.gnq", *deciding_options(name, options)]),
        "environment": environment(device, options.threads),
        "repeats": repeats,
        **part.measure(options.quick, repeats, device, options.threads),
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, part.tables(record), options)


def deciding_options(part: str, options: argparse.Namespace) -> list[str]:
    """Return the options that decide the numbers of one part, as they are written on the command line."""
    words = ["--part", part] + (["--quick"] if options.quick else [])
    if options.device != "cpu":
        words += ["--device", options.device]
    if options.repeats is not None:
        words += ["--repeats", str(options.repeats)]
    return words if options.threads == 1 else [*words, "--threads", str(options.threads)]


if __name__ == "__main__":
    main()
