"""Plant defects, one after another, in a copy of the code, and say which test catches each.

    python .ci/mutants.py            with the tests of `make test`
    python .ci/mutants.py long       with all tests but those of a GPU

Tests are run in the order of `make quick`, the nearest first, until one fails. Some hours; the exit status is 1 if a
defect was caught by no test or could not be planted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from imports import ROOT
from touched import git, tests_by_distance

DEFECTS: list[tuple[str, str, str]] = [
    ("audits/statistics/chance.py", "return ABOVE if low is not None and low > CHANCE else UNSURE", "return ABOVE"),
    (
        "audits/statistics/conformal.py",
        '(1 + ordered.size - np.searchsorted(ordered, score, side="left"))',
        '(ordered.size - np.searchsorted(ordered, score, side="left"))',
    ),
    ("audits/statistics/cross_conformal.py", "np.asarray((1 + as_large) / (1 + sum", "np.asarray(as_large / (1 + sum"),
    ("audits/statistics/paired.py", "math.sqrt(size / (size - 1))", "1.0"),
    ("audits/statistics/epsilon_bound.py", "float(epsilon), delta) > tail", "float(epsilon), delta) < tail"),
    (
        "audits/statistics/one_target.py",
        "float(betainc(many, size - many + 1.0, odds))",
        "float(betainc(many, size - many, odds))",
    ),
    (
        "audits/statistics/intervals.py",
        "return max(0.0, area - half), min(1.0, area + half)",
        "return max(0.0, area - half / 2), min(1.0, area + half)",
    ),
    ("audits/apollo/attacks/ruli.py", "unlearned - held_out, 0.0)", "held_out - unlearned, 0.0)"),
    (
        "audits/apollo/attacks/u_mia_oracle.py",
        "return (below + upto) / (2 * len(ordered))",
        "return upto / len(ordered)",
    ),
    (
        "audits/apollo/attacks/calibration.py",
        "(own.sum(0) - own) / np.maximum(count, 1)",
        "own.sum(0) / np.maximum(count, 1)",
    ),
    (
        "audits/apollo/design/memorisation.py",
        "test_pool[: split.targets * split.candidates_unseen]",
        "test_pool[: split.candidates_unseen]",
    ),
    (
        "audits/apollo/evidence/yoqo.py",
        "(answers * outside[..., None]).sum(0) / outside.sum(0)[:, None]",
        "(answers * outside[..., None]).sum(0) / len(outside)",
    ),
    (
        "audits/apollo/evidence/plus.py",
        "output.masked_fill(~true, 0.0).sum(1) - others",
        "output.masked_fill(~true, 0.0).sum(1)",
    ),
    ("audits/mia/given_pool.py", "return int(self.member.sum()) + len(self.filler)", "return int(self.member.sum())"),
    ("audits/gnq/noise.py", "strength * float(np.sqrt(mean / parameters))", "strength * float(mean / parameters)"),
    ("audits/gnq/held_out.py", "return total / (models // 2)", "return total / models"),
    ("audits/gnq/gradient_inversion/matching.py", "return 1 - dot(found, target)", "return dot(found, target)"),
    ("audits/gradients/gram.py", "max(1, memory // (2 * numbers))", "memory // (2 * numbers)"),
    (
        "audits/gradients/products.py",
        "OuterRule.inner_of_each(rule, b)).sum((1, 2, 3))",
        "OuterRule.inner_of_each(rule, b)).mean((1, 2, 3))",
    ),
    (
        "audits/gradients/layers/conv.py",
        "call.input.ndim == 2 + len(module.kernel_size) and",
        "call.input.ndim >= len(module.kernel_size) and",
    ),
    ("audits/queries/hop_skip_jump_draws.py", "(2 * drawn - 1).astype", "(drawn - 1).astype"),
    (
        "audits/queries/small_budgets.py",
        "math.floor(self.directions * math.sqrt(t))",
        "math.floor(self.directions * t)",
    ),
    ("audits/data/cifar.py", "rows[:, self.label_bytes - 1].astype", "rows[:, 0].astype"),
    ("audits/data/groups.py", 'type(name).__name__ in ("NAType", "NaTType")', "False"),
    ("audits/data/points.py", "shape[3] <= MOST_CHANNELS or shape[1] == shape[2]", "shape[3] <= MOST_CHANNELS"),
    (
        "audits/data/shards.py",
        "return sorted(entry.path for entry in found if",
        "return list(entry.path for entry in found if",
    ),
    ("audits/own/import_path.py", "place not in left_out and", ""),
    ("audits/own/permission.py", "isinstance(name, str) and name.startswith(PREFIX)", "False"),
    ("audits/models/resnet18.py", "torch.relu(self.body(x) + self.shortcut(x))", "torch.relu(self.body(x))"),
    ("actors/capacity.py", "int(self.gpus) * int(1 / gpus + 1e-9)", "int(self.gpus * int(1 / gpus))"),
    (
        "actors/interrupts.py",
        "return 128 + (_RECEIVED[0] if _RECEIVED else signal.SIGINT)",
        "return 128 + signal.SIGINT",
    ),
    ("actors/lives.py", "life.took and life.place.node != node", "life.place.node != node"),
    ("tune_spaces/tmia.py", "for level in LEVELS if level >= least", "for level in LEVELS"),
    (
        "orchestrator/engine/ci/summary.py",
        "value is None or not is_number(value) or line.is_void(metric)",
        "value is None or not is_number(value)",
    ),
    ("orchestrator/engine/jobs/keys.py", r'hashlib.sha256(b"bytes\0" + bytes(array))', r'hashlib.sha256(b"bytes\0")'),
    ("orchestrator/cli/handover.py", 'or ".." in parts:', "or False:"),
    ("orchestrator/compared/data.py", 'return same, "" if same else', 'return True, "" if same else'),
    ("orchestrator/compared/leaks.py", "return row.metric != AUC and any(", "return any("),
    ("orchestrator/scored/names.py", "np.where(long, sign, 1) * places", "places"),
    ("orchestrator/apollo/result/void.py", "row.fdp.low > FAR * row.claimed_fdr", "row.fdp.low > row.claimed_fdr"),
    ("orchestrator/apollo/stages/disclosure.py", "if not torch.equal(value, stored[name]):", "if False:"),
    (
        "orchestrator/report/chance.py",
        "return standing_of(row, level) == UNSURE",
        "return standing_of(row, level) == ABOVE",
    ),
    ("orchestrator/tmia/stages/stars.py", "np.where(true >= 0, true, own)", "own"),
    ("orchestrator/engine/media.py", "LOOKS.fullmatch(look.strip()) and", "True and"),
    ("orchestrator/cli/permission.py", "[(reach.token_field, reach.credential)] if reach.token_field else []", "[]"),
]
"""File, what stands there once, and what is put in its place."""
PYTEST = (sys.executable, "-m", "pytest", "-qx", "--processes=2", "-p", "no:cacheprovider")
AT_ONCE = 12
"""Test files that one process of pytest is given: after each, one looks whether a test has failed."""


def main(tier: str) -> int:
    """Plant all defects and print a line for each; return how many nothing caught."""
    free = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "orch"
        for file in git(ROOT, "ls-files"):
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy / file)
        for file, there, instead in DEFECTS:
            whole, begun = (copy / file).read_text(), time.monotonic()
            if whole.count(there) != 1:
                caught = "NOT PLANTED: its place has changed"
            else:
                (copy / file).write_text(whole.replace(there, instead))
                caught = caught_by(copy, file, tier) or "CAUGHT BY NOTHING"
                (copy / file).write_text(whole)
            free += caught.isupper() or caught.startswith("NOT")
            print(f"{file}: {there} -> {instead}: {caught} ({time.monotonic() - begun:.0f} s)", flush=True)
    return free


def caught_by(copy: Path, file: str, tier: str) -> str:
    """Return the first test that fails in ``copy``; empty if all pass."""
    every = [str(path.relative_to(copy)) for path in sorted(copy.glob("tests/**/test_*.py"))]
    near = [test for tests in tests_by_distance([file], ROOT) for test in tests]
    order = list(dict.fromkeys(near + every))
    for start in range(0, len(order), AT_ONCE):
        said = subprocess.run(
            [*PYTEST, *(("-m", "not gpu") if tier == "long" else ()), *order[start : start + AT_ONCE]],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
            capture_output=True,
            text=True,
        )
        failed = [line for line in said.stdout.split("\n") if line.startswith(("FAILED", "ERROR"))]
        if said.returncode not in (0, 5):  # 5: all are deselected
            return failed[0].split(" - ")[0] if failed else said.stdout[-300:]
    return ""


if __name__ == "__main__":
    sys.exit(1 if main(*(sys.argv[1:] or ["test"])) else 0)
