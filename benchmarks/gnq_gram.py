"""The Gram matrix of all gradients by the layer engine, against gradients made point by point and made by Opacus.

The plain forms make every point's gradient, by one backward pass a point or by Opacus' ``GradSampleModule`` for 128
points at a time, hold all N × P of them and multiply them parameter by parameter. *Engine* is
``audits.gradients.gram``. All compute in the same type and sum products in float64. Before anything is timed they must
agree to 1e-8 of the largest entry, in float64 on a few points. Models have random weights and read random images.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from audits.gradients.capture import exact
from benchmarks.gnq_gram_forms import CASES, FORMS, PLAIN, Case, engine, peak, problem, timed
from benchmarks.gnq_uniqueness import ratio
from benchmarks.record import described, median, number, rounded, table

TOLERANCE = 1e-8
FEW = 12
"""Points on which the forms are compared."""
LITTLE = 16
"""The engine is timed a second time, allowed this many times less memory for gradients."""
PAPER = 20_000
"""The N to which the GPU's times are carried on."""


def measure(quick: bool, repeats: int, device: str, threads: int) -> dict[str, Any]:
    """Return {"cases": [...]}, one entry a model; raises ``SystemExit`` when two forms disagree."""
    cases = CASES[device.partition(":")[0]]
    if quick:
        cases = tuple(replace(case, sizes=(8,), growth=(8, 16) if case.growth else ()) for case in cases)
    return {"cases": [measured(case, repeats, device, threads, apart=not quick) for case in cases]}


def measured(case: Case, repeats: int, device: str, threads: int, apart: bool) -> dict[str, Any]:
    """Return the measurements of one model. ``apart``: take each peak of memory in a process of its own (CPU)."""
    with exact(torch.device(device)):  # for the plain forms: no TF32
        difference = largest_difference(case, device)
        if not difference <= TOLERANCE:
            raise SystemExit(f"{case.model}: the forms differ by {difference:.1e}; allowed: {TOLERANCE:.0e}")
        sizes = [
            {"n": n}
            | compared(case, n, repeats, device)
            | {"peak_bytes": {name: peak(case, name, n, device, threads, apart) for name in FORMS}}
            for n in case.sizes
        ]
        growth = [grown(case, n, repeats, device, threads, apart) for n in case.growth]
    return {
        "model": case.model,
        "settings": case.settings,
        "shape": list(case.shape),
        "parameters": sum(each.numel() for each in problem(case, 2, device)[0].parameters()),
        "dtype": str(case.dtype).removeprefix("torch."),
        "memory": case.memory,
        "largest_difference": rounded(difference),
        "sizes": sizes,
        "growth": growth,
    }


def largest_difference(case: Case, device: str) -> float:
    """Return the largest difference between a plain form and the engine, of the largest entry, on a few points."""
    case = replace(case, dtype=torch.float64)
    model, x, y = problem(case, FEW, device)
    K = engine(case, model, x, y)
    return max(float((FORMS[name](case, model, x, y) - K).abs().max() / K.abs().max()) for name in PLAIN)


def compared(case: Case, n: int, repeats: int, device: str) -> dict[str, Any]:
    """Return seconds and ratios of all forms for ``n`` points; the forms take turns."""
    given = problem(case, n, device)
    seconds: dict[str, list[float]] = {name: [] for name in FORMS}
    for turn in range(repeats):
        print(f"{case.model}, N = {n}: repeat {turn + 1} of {repeats}", file=sys.stderr)
        for name, form in FORMS.items():
            seconds[name].append(timed(partial(form, case, *given), device))
    return {
        "seconds": {name: median(found) for name, found in seconds.items()},
        "ratio": {name: ratio(seconds[name], seconds["engine"]) for name in PLAIN},
    }


def grown(case: Case, n: int, repeats: int, device: str, threads: int, apart: bool) -> dict[str, Any]:
    """Return seconds and peak of the engine for ``n`` points, with its memory and with little of it."""
    found: dict[str, Any] = {"n": n}
    given = problem(case, n, device)
    for name, memory in (("usual", case.memory), ("little", case.memory // LITTLE)):
        print(f"{case.model}, N = {n}: the engine with {memory / 2**20:.0f} MiB", file=sys.stderr)
        own = replace(case, memory=memory)
        seconds = [timed(partial(engine, own, *given), device) for _ in range(repeats)]
        found[name] = {
            "memory": memory,
            "seconds": median(seconds),
            "peak_bytes": peak(own, "engine", n, device, threads, apart),
        }
    return found


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    parts = [described(record), facts(record), ratios(record)]
    parts += [growth(case, clock_of(record)) for case in record["cases"] if case["growth"]]
    if record["section"].endswith("cuda"):
        parts.append(carried_on(record["cases"][0]))
    return "\n\n".join(part.rstrip("\n") for part in parts)


def facts(record: dict[str, Any]) -> str:
    """Return what the numbers are of."""
    return (
        "; ".join(
            f"{case['model']}: {number(case['parameters'])} parameters, images of {'×'.join(map(str, case['shape']))}, "
            f"{case['dtype']}, largest difference in float64 {case['largest_difference']:.0e}"
            for case in record["cases"]
        )
        + "."
    )


def ratios(record: dict[str, Any]) -> str:
    """Return the table of all forms."""
    clock, rows = clock_of(record), []
    for case in record["cases"]:
        for size in case["sizes"]:
            for name in PLAIN:
                found = size["ratio"][name]
                rows.append(
                    [
                        case["model"],
                        str(size["n"]),
                        name,
                        number(size["seconds"][name]),
                        number(size["seconds"]["engine"]),
                        f"**{number(found['median'])}** ({number(found['least'])}–{number(found['most'])})",
                        f"{mebibytes(size['peak_bytes'][name])} / {mebibytes(size['peak_bytes']['engine'])}",
                    ]
                )
    header = ["model", "N", "plain form", f"its {clock}", f"{clock} of the engine", "ratio (least–most)"]
    return table([*header, "peak memory, plain / engine, MiB"], rows)


def growth(case: dict[str, Any], clock: str) -> str:
    """Return the table of the engine alone as N grows."""
    rows = []
    for size in case["growth"]:
        for name in ("usual", "little"):
            found = size[name]
            rows.append(
                [
                    str(size["n"]),
                    str(found["memory"] // 2**20),
                    number(found["seconds"]),
                    number(found["seconds"] / size["n"] ** 2 * 1e6),
                    mebibytes(found["peak_bytes"]),
                ]
            )
    header = ["N", "memory for gradients, MiB", clock, "microseconds a pair (N²)", "peak memory, MiB"]
    return f"The engine alone, {case['model']}:\n\n" + table(header, rows)


def carried_on(case: dict[str, Any]) -> str:
    """Return what the times would mean for the paper's N, which was not run."""
    *_, before, last = case["growth"]
    step = last["usual"]["seconds"] / before["usual"]["seconds"]
    seconds = last["usual"]["seconds"] * (PAPER / last["n"]) ** 2
    return (
        f"From N = {before['n']} to {last['n']} the time grew {number(step)}-fold (4 would be quadratic). If it "
        f"goes on with N², N = {number(PAPER)} takes {number(seconds / 60)} minutes for one set of weights, and K "
        f"{number(8 * PAPER**2 / 2**30)} GiB: an extrapolation, that was not run."
    )


def clock_of(record: dict[str, Any]) -> str:
    """Return what is counted, in words."""
    return "seconds" if record["section"].endswith("cuda") else "CPU seconds"


def mebibytes(count: float) -> str:
    """Return bytes as MiB."""
    return number(count / 2**20)


if __name__ == "__main__":
    raise SystemExit("run python -m benchmarks.gnq --part gram")
