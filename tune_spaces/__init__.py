"""Sweeps by name; importing this package fills the registry ``SWEEPS``."""

from tune_spaces import apollo, gnq, presets, tmia
from tune_spaces.registry import SWEEPS, Sweep

__all__ = ["SWEEPS", "Sweep", "apollo", "gnq", "presets", "tmia"]
