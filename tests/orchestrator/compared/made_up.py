"""Made-up runs of every kind, and what ``orch compare`` says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from orchestrator.cli.main import main
from orchestrator.compared.rows import CompareResult
from orchestrator.engine.run.fingerprints import queried, questions
from orchestrator.engine.store.payloads import pack_table
from orchestrator.kinds import kind_named
from orchestrator.report.result import run_of

TARGETS, POINTS = 6, 60
Columns = dict[str, Any]


def rows(seed: int, gain: float, *, setting: str = "base", membership: int = 0) -> Columns:
    """Return the scores of two attacks on some targets; noise is shared by runs of one ``membership``."""
    design, own = np.random.default_rng(membership), np.random.default_rng((seed, 1))
    member = np.concatenate([design.permutation(np.arange(POINTS) % 2 == 0) for _ in range(TARGETS)])
    noise = design.normal(size=member.size)
    size = member.size
    columns: Columns = {name: [] for name in ("setting", "attack", "target", "point_id", "member", "score")}
    for place, attack in enumerate(("loss", "right")):
        columns["setting"] += [setting] * size
        columns["attack"] += [attack] * size
        columns["target"] += np.repeat(np.arange(TARGETS), POINTS).tolist()
        columns["point_id"] += np.tile(np.arange(POINTS), TARGETS).tolist()
        columns["member"] += member.tolist()
        columns["score"] += (noise + 0.3 * own.normal(size=size) + (0.4 + gain * (1 - place)) * member).tolist()
    return columns


def apollo(columns: Columns) -> Columns:
    """Return the same scores as a table of Apollo."""
    size = len(columns["score"])
    return {
        **{name: columns[name] for name in ("setting", "attack", "target", "point_id", "score")},
        "shadow_set": columns["target"],
        "unlearner": ["scrub"] * size,
        "group": ["forget" if each else "unseen" for each in columns["member"]],
        "decision_0.1": [float(each > 1.0) for each in columns["score"]],
    }


def tmia(columns: Columns) -> Columns:
    """Return the same scores as a table of TMIA."""
    size = len(columns["score"])
    return {
        **{name: columns[name] for name in ("setting", "attack", "point_id", "member")},
        "mode": ["I"] * size,
        "access": ["posteriors"] * size,
        "group": ["target"] * size,
        "model": columns["target"],
        "candidate": columns["point_id"],
        "statistic": columns["score"],
        "p": [float("nan")] * size,
        "decision": [each > 1.0 for each in columns["score"]],
        "asked": [True] * size,
    }


def gnq(columns: Columns) -> Columns:
    """Return the scores of the first attack as a table of GNQ: two targets a pool."""
    half = len(columns["score"]) // 2
    target = np.array(columns["target"][:half])
    return {
        "setting": columns["setting"][:half],
        "pool": (target // 2).tolist(),
        "twin": (target % 2).tolist(),
        "arm": ["none"] * half,
        "point_id": columns["point_id"][:half],
        "member": columns["member"][:half],
        "loss": columns["score"][:half],
    }


def run(
    folder: Path,
    kind: str,
    columns: Columns,
    data: str = "digits",
    void: str = "",
    contents: str = "",
    unlearning: Sequence[Columns] = (),
    target: Columns | None = None,
) -> str:
    """Write a finished run, in which the attack ``void`` broke a nominal rate; return its folder.

    ``contents``: the fingerprint of its data, "" for a result of a version that kept none.
    """
    folder.mkdir()
    scores = pa.table(columns)
    settings = [{"setting": name, "overrides": {}} for name in dict.fromkeys(columns["setting"])]
    document = {"schema": "orch.result/2", "kind": kind, "seed": 0, "settings": settings,
                "table": [{"setting": "base", "attack": void, "void": bool(void)}],
                "plan": {"data": {"name": data, "root": None}, "unlearning": list(unlearning),
                         "target": target}}  # fmt: skip
    if contents:
        judged = kind_named(kind).judged
        assert judged is not None
        document["fingerprints"] = {"data": contents, **questions(queried(judged.read(scores)))}
    (folder / "result.json").write_text(json.dumps(document))
    (folder / "scores.parquet").write_bytes(pack_table(scores))
    return str(folder)


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> CompareResult:
    """Return what ``orch compare`` says in JSON."""
    assert main(["compare", *words, "--json"]) == 0
    return run_of(json.loads(capsys.readouterr().out), CompareResult)


def mia(columns: Columns) -> Columns:
    """Return the same scores as a table of the fourth audit: two targets a pool."""
    size = len(columns["score"])
    return columns | {
        "pool": [each // 2 for each in columns["target"]],
        "role": ["target"] * size,
        "canary": [False] * size,
        "decision_0.1": [float(each > 1.0) for each in columns["score"]],
    }
