"""Sweeps by name."""

from tune_spaces.registry import SWEEPS, Sweep

__all__ = ["SWEEPS", "Sweep"]
