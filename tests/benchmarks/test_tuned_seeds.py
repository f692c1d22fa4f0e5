"""Runs of ``orch tune tmia`` side by side: the numbers are those of their results, the interval is over runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import tuned_seeds
from orchestrator.engine.run.result_head import SCHEMA


def result(seed: int, gain: float | None) -> dict[str, Any]:
    """Return what of a result is read."""
    judged = [{"setting": "a", "at_selection": 0.03, "on_targets": 0.02 + seed / 1000}]
    judged += [{"setting": "plan", "at_selection": 0.01, "on_targets": 0.01}] * (gain is not None)
    cell = {"candidates": 7, "precision": None, "fpr": 0.04, "null_fpr": 0.05}
    return {
        "schema": SCHEMA,
        "kind": "tmia",
        "seed": seed,
        "plan": {},
        "settings": [{"setting": setting, "overrides": {}} for setting in ("plan", "a")],
        "table": [
            {"setting": setting, "attack": attack, **cell, "coverage": coverage}
            for setting, attack, coverage in (
                ("plan", "tmia", 0.9),
                ("plan", "tmia_distance", 0.2),
                ("a", "tmia", 0.9),
                ("a", "tmia_distance", 0.1),
            )
        ],
        "selection": {
            "own": "plan" if gain is not None else "a",
            "metric": "selected.tmia_distance.advantage",
            "winner": "a",
            "judged": judged,
            "gain": None if gain is None else {"on_targets": gain, "on_targets_low": -0.1, "on_targets_high": 0.1},
        },
    }


def test_a_line_a_run_and_an_interval_over_runs(tmp_path: Path, capsys: Any) -> None:
    gains = (0.01, None, 0.03)
    for seed, gain in enumerate(gains):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "result.json").write_text(json.dumps(result(seed, gain)))
        (folder / "scores.parquet").write_bytes(b"")
    tuned_seeds.main([str(tmp_path / str(seed)) for seed in range(3)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == (
        "| 0 | a | 0.0300 | 0.0200 | 0.0100 | +0.0100 [-0.1000, +0.1000] "
        "| 7 / 7 | – / – | 0.100 / 0.200 | 0.040 / 0.040 | 0.050 / 0.050 |"
    )
    assert "+0.0000 (chosen is the plan's own)" in lines[3]
    advantage = [0.02, 0.021, 0.022]
    assert f"| on the targets | {interval(advantage)} | " in lines[9]
    assert lines[9].endswith(f" | {interval([0.01, 0.0, 0.012], '+.4f')} |")
    assert lines[11] == "| precision | – | – | – |"  # nobody has a precision


def interval(values: list[float], form: str = ".4f") -> str:
    """Return mean and t interval as they are printed."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    mean = np.mean(values)
    return f"{mean:{form}} [{mean - half:{form}}, {mean + half:{form}}]"
