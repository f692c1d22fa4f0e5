"""A package that knows nothing of this repository but its public names: built, installed, listed, audited, edited."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
import yaml

from orchestrator.engine.store.store import Store
from tests.cases.own_components import ENTRY_POINTS, edit, write_package

pytestmark = [pytest.mark.long, pytest.mark.cluster]
ROOT = Path(__file__).resolve().parents[2]
TARGETS, SHADOWS, OFFLINE = 2, 4, 2
PLAN = {
    "audit": {
        "kind": "apollo",
        "attacks": ["apollo", "margin"],
        "search": {"steps": 2},
        "fpr": [0.5],
        "bootstrap": 20,
        "permutations": 20,
    },
    "data": {"name": "corners"},
    "split": {
        "targets": TARGETS,
        "train_size": 60,
        "target_pool": 120,
        "shadow_pool": 800,
        "test_pool": 200,
        "forget": 0.5,
        "candidates": {"forget": 12, "unseen": 20},
        "shadows": SHADOWS,
        "offline_shadows": OFFLINE,
    },
    "model": {"name": "small_net", "settings": {"width": 12}},
    "recipe": {"epochs": 2, "batch_size": 32},
    "unlearning": [{"method": "gradient_ascent", "epochs": 1}, {"method": "shrink", "factor": 0.7}],
}
MODELS = TARGETS * (1 + SHADOWS + OFFLINE)
STAGES = ("train", "unlearn", "utility", "trace", "search", "score")


class Installed:
    """The package's wheel in an environment of its own, in which commands of ``orch`` are run elsewhere."""

    def __init__(self, place: Path) -> None:
        self.place = place
        project = place / "project"
        write_package(project)
        groups = "".join(
            f'[project.entry-points."{group}"]\n' + "".join(f'"{name}" = "{at}"\n' for name, at in entries.items())
            for group, entries in ENTRY_POINTS.items()
        )
        (project / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            f'[project]\nname = "mine"\nversion = "1.2"\n{groups}[tool.setuptools]\npackages = ["mine"]\n'
        )
        pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
        build = ("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", place, project)
        subprocess.run([sys.executable, *pip, *build], check=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "env"], check=True)
        (self.site,) = (place / "env" / "lib").glob("python*/site-packages")
        (self.site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")  # torch, orch, …
        self.python = place / "env" / "bin" / "python"
        (wheel,) = place.glob("mine-*.whl")
        subprocess.run([self.python, *pip, "install", "--no-deps", "--no-index", wheel], check=True)
        (place / "elsewhere").mkdir()
        (place / "plan.yaml").write_text(yaml.safe_dump(PLAN))

    def orch(self, *words: str) -> str:
        """Return what ``orch WORDS`` prints."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(self.python), "-m", "orchestrator.cli.main", *words]
        done = subprocess.run(
            command, cwd=self.place / "elsewhere", env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def audit(self, name: str, workers: int) -> bytes:
        """Return the scores of an audit with the store ``name``."""
        out = self.place / f"out-{name}-{workers}"
        store = ("--store", str(self.place / name), "--workers", str(workers), "--out", str(out), "--force")
        self.orch("audit", "apollo", str(self.place / "plan.yaml"), *store)
        return (out / "scores.parquet").read_bytes()

    def stored(self, name: str) -> Counter[str]:
        """Return how many artefacts of each stage the store ``name`` has."""
        store = Store(self.place / name)
        return Counter({stage: len(store.keys(stage)) for stage in STAGES})


def test_a_package_is_listed_audited_alike_by_workers_and_redone_where_it_was_edited(tmp_path: Path) -> None:
    mine = Installed(tmp_path)
    for what, name in (("models", "small_net"), ("data", "corners"), ("unlearners", "shrink"), ("attacks", "margin")):
        told = re.sub(r"\n\s+", " ", mine.orch("ls", what))  # as it is where lines are not wrapped
        (line,) = (line for line in told.splitlines() if line.split()[0] == name)
        assert line.endswith("[mine 1.2]")

    alone, both = mine.audit("alone", 0), mine.audit("both", 2)
    assert alone == both
    first = mine.stored("alone")
    assert first == mine.stored("both")
    assert (first["train"], first["unlearn"]) == (MODELS, 3 * MODELS)

    edit(mine.site / "mine" / "forgetting.py", '"""Shrink the head."""', '"""Shrink the last layer."""  # a comment')
    assert mine.audit("alone", 0) == alone and mine.stored("alone") == first

    edit(mine.site / "mine" / "rates.py", "1.0", "0.5")  # which the unlearning method imports
    assert mine.audit("alone", 0) != alone
    redone = mine.stored("alone") - first
    per_method = {stage: first[stage] // 4 for stage in ("utility", "search", "score")}  # identity, two, retrain
    assert redone == Counter({"unlearn": MODELS, **per_method})
    assert mine.audit("both", 2) == mine.audit("alone", 0)
    assert mine.stored("both") == mine.stored("alone")
