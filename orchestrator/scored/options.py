"""Options of ``orch score``: which columns say what, and what is asked of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from audits.errors import BadInput

AUTO = "auto"
DEFAULT_FPRS = (0.001, 0.01, 0.1)
DEFAULT_PRIORS = (0.01, 0.1)


@dataclass(frozen=True)
class Options:
    """``scores`` and ``decisions`` name columns; "" for none. ``fprs`` empty: those that the non-members resolve."""

    layout: str = AUTO
    member: str = ""
    scores: tuple[str, ...] = ()
    group: str = ""
    point: str = ""
    decisions: tuple[str, ...] = ()
    higher_is_member: bool = True
    fprs: tuple[float, ...] = ()
    priors: tuple[float, ...] = DEFAULT_PRIORS
    delta: float = 1e-5
    level: float = 0.95
    drop_missing: bool = False
    seed: int = 0

    @property
    def names_columns(self) -> bool:
        """Whether any column is named, as a plain table needs it and no other layout takes it."""
        return bool(self.member or self.scores or self.group or self.point or self.decisions)

    def resolved(self) -> dict[str, Any]:
        """Return the options as plain values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def check(self) -> None:
        """Raise BadInput for numbers that are none of their kind, and decisions that belong to no score."""
        for flag, values in (("--fpr", self.fprs), ("--prior", self.priors), ("--level", (self.level,))):
            for value in values:
                if not 0.0 < value < 1.0:
                    raise BadInput(f"{flag} {value:g} must lie between 0 and 1")
        if not 0.0 <= self.delta < 1.0:
            raise BadInput(f"--delta {self.delta:g} must be at least 0 and below 1")
        if self.decisions and len(self.decisions) != len(self.scores):
            raise BadInput(
                f"--decision is given {len(self.decisions)} times and --score {len(self.scores)} times; "
                "give one decision a score, in the same order"
            )
