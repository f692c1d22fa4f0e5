"""The sweeps that files of this package say entirely (``tune_spaces/sweeps/NAME.yaml``), filed under their names."""

from __future__ import annotations

from importlib import resources

import yaml

from tune_spaces.files import sweep_of
from tune_spaces.registry import sweep


def texts() -> dict[str, str]:
    """Return name → text of the shipped sweep files."""
    folder = resources.files("tune_spaces") / "sweeps"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda entry: entry.name)
    return {entry.name.removesuffix(".yaml"): entry.read_text(encoding="utf-8") for entry in files}


for name, text in texts().items():
    sweep(sweep_of(yaml.safe_load(text), name, text))
