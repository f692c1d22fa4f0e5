"""Apollo's search: the batched form against the naive form of the method's public reference, in one process.

    python -m benchmarks.apollo_search                                  # mlp, 12-layer mlp, cnn, resnet18; minutes
    python -m benchmarks.apollo_search --device cuda --paper-size       # ResNet-18, m = 32, T = 50, 400 candidates

One *candidate-step* is one candidate, one direction (UNDER or OVER), one step through all m shadows; a search of K
candidates has K·2·T of them. The naive form runs on the first few candidates only: its time is proportional to their
number. The two forms take turns, and every number is the median over the repeats. Before anything is timed, both must
give the same inputs and confidences in float64 (1e-8), else the benchmark stops. Peak memory is what one run of a form
adds to the loaded shadows, on a CPU measured in a process of its own. On a GPU algorithms are deterministic and
products are rounded to TF32, as in runs of the paper's plans. Needs torch only: no Ray, no MLflow, no data set.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import torch

from audits.gpu import settle
from benchmarks.record import (
    SCHEMA,
    add_output_options,
    described,
    environment,
    median,
    number,
    rounded,
    table,
    write,
)
from benchmarks.search_cases import DEFAULT_CASES, PAPER_CASES, Case, Problem, make_problem, tiny
from benchmarks.search_forms import FORMS, forget_gradients, largest_difference, peak_bytes

TOLERANCE = 1e-8
"""How far the two forms may differ in float64."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.apollo_search", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these of the cases, e.g. mlp cnn")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    parser.add_argument("--paper-size", action="store_true", help="the paper's sizes: meant for a GPU")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: shows that it works, the numbers mean nothing"
    )
    parser.add_argument("--repeats", type=int, help="rounds of both forms (default 5, with --paper-size or --quick 1)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")
    parser.add_argument("--chunk", type=int, help="candidates that go through a shadow at once (default 128)")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    cases = chosen(parser, options)
    torch.set_num_threads(options.threads)
    if options.device.startswith("cuda"):
        settle(tf32=True)
    repeats = options.repeats or (1 if options.quick or options.paper_size else 5)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "apollo_search",
        "section": section(options),
        "command": " ".join(["python -m benchmarks.apollo_search", *deciding_options(options)]),
        "environment": environment(options.device, options.threads),
        "repeats": repeats,
        "cases": [measure(case, options.device, options.threads, repeats) for case in cases],
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def chosen(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Case]:
    """Return the cases that the options ask for; ends with one line and exit code 2 on what cannot be done."""
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: torch finds no GPU here; use --device cpu")
    for name in ("repeats", "threads", "chunk"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} {value}: give 1 or more")
    known = {case.name: case for case in (PAPER_CASES if options.paper_size else DEFAULT_CASES)}
    unknown = [name for name in options.cases or () if name not in known]
    if unknown:
        parser.error(f"--cases {unknown[0]!r}: allowed are {', '.join(map(repr, known))}")
    cases = [known[name] for name in options.cases or known]
    if options.quick:
        cases = [tiny(case) for case in cases]
    return [replace(case, chunk=options.chunk or case.chunk) for case in cases]


def deciding_options(options: argparse.Namespace) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    words: list[str] = []
    for name in ("cases", "device", "paper_size", "quick", "repeats", "threads", "chunk"):
        value = getattr(options, name)
        if value in (None, False) or (name, value) in (("device", "cpu"), ("threads", 1)):
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words += map(str, value if name == "cases" else [value])
    return words


def section(options: argparse.Namespace) -> str:
    """Return the name of the section of the docs that a run fills."""
    return f"apollo_search {options.device.split(':')[0]}{' paper-size' if options.paper_size else ''}"


def measure(case: Case, device: str, threads: int, repeats: int) -> dict[str, Any]:
    """Return the measurements of one case; raises ``SystemExit`` when the two forms disagree."""
    print(f"{case.name}: comparing the forms in float64", file=sys.stderr)
    difference = largest_difference(case, device)
    if not difference <= TOLERANCE:
        raise SystemExit(f"{case.name}: the two forms differ by {difference:.1e} in float64; allowed: {TOLERANCE:.0e}")
    problem = make_problem(case, device)
    problems = {"naive": problem.first(case.naive_candidates), "batched": problem}
    for form in FORMS:  # the first run pays for start-up
        timed(form, problem.first(1), device)
    rates: dict[str, dict[str, list[float]]] = {form: {"cpu": [], "wall": []} for form in FORMS}
    for turn in range(repeats):
        print(f"{case.name}: repeat {turn + 1} of {repeats}", file=sys.stderr)
        for form in FORMS:
            done = len(problems[form].x) * 2 * case.steps
            cpu, wall = timed(form, problems[form], device)
            rates[form]["cpu"].append(done / cpu)
            rates[form]["wall"].append(done / wall)
    del problem, problems
    return {
        "name": case.name,
        "model": case.model,
        "settings": dict(case.settings),
        "shape": list(case.shape),
        "shadows": case.shadows,
        "candidates": case.candidates,
        "naive_candidates": case.naive_candidates,
        "steps": case.steps,
        "chunk": case.chunk,
        "largest_difference": difference,
        "forms": {
            form: {
                "per_cpu_second": median(rates[form]["cpu"]),
                "per_second": median(rates[form]["wall"]),
                "peak_bytes": peak_apart(case, form, device, threads),
            }
            for form in FORMS
        },
        "ratio": {clock: ratio(rates["batched"][clock], rates["naive"][clock]) for clock in ("cpu", "wall")},
    }


def timed(form: str, problem: Problem, device: str) -> tuple[float, float]:
    """Return (seconds of CPU time of this process, seconds of wall time) of one run of ``form``."""
    synchronize(device)
    cpu, wall = time.process_time(), time.perf_counter()
    FORMS[form](problem)
    synchronize(device)
    spent = time.process_time() - cpu, time.perf_counter() - wall
    forget_gradients(problem)
    return spent


def synchronize(device: str) -> None:
    """Wait for the GPU."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def ratio(fast: Sequence[float], slow: Sequence[float]) -> dict[str, float]:
    """Return median, least and most of the ratios of the repeats."""
    found = [one / other for one, other in zip(fast, slow, strict=True)]
    return {"median": rounded(statistics.median(found)), "least": rounded(min(found)), "most": rounded(max(found))}


def peak_apart(case: Case, form: str, device: str, threads: int) -> int:
    """Return ``peak_bytes``, on a CPU from a process of its own."""
    if device.startswith("cuda"):
        return peak_bytes(case, form, device, threads)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(peak_bytes, case, form, device, threads).result()


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    clock = "wall" if record["section"].startswith("apollo_search cuda") else "cpu"
    rate = "per_second" if clock == "wall" else "per_cpu_second"
    unit = "candidate-steps per second" if clock == "wall" else "candidate-steps per CPU second"
    rows = []
    for case in record["cases"]:
        naive, batched, found = case["forms"]["naive"], case["forms"]["batched"], case["ratio"][clock]
        rows.append(
            [
                f"{case['name']} ({'×'.join(map(str, case['shape']))})",
                f"{case['shadows']} / {case['candidates']} / {case['steps']}",
                number(naive[rate]),
                number(batched[rate]),
                f"**{number(found['median'])}** ({number(found['least'])}–{number(found['most'])})",
                number(case["ratio"]["wall"]["median"]),
                f"{number(naive['peak_bytes'] / 2**20)} / {number(batched['peak_bytes'] / 2**20)}",
                f"{case['largest_difference']:.0e}",
            ]
        )
    header = [
        "model (input)",
        "m / K / T",
        f"naive, {unit}",
        f"batched, {unit}",
        "ratio (least–most)",
        "ratio of wall time",
        "peak memory, naive / batched, MiB",
        "largest difference in float64",
    ]
    return described(record) + "\n" + table(header, rows)


if __name__ == "__main__":
    main()
