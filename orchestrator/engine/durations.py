"""Durations as a person says them."""

from __future__ import annotations


def seconds(value: float) -> str:
    """Return a duration as a person says it: 0.4 s, 12 s, 3 min 05 s, 2 h 10 min."""
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
