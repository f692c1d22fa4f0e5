"""Settings of the adversarial walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from audits.errors import BadInput


@dataclass(frozen=True)
class SearchSettings:
    """α, β, ε, T and the step size of the search; ``epsilon`` is the width of one shell in units of the inputs.

    ``norm`` measures the shells: "l2" (the paper's), or "linf", the largest change of a coordinate.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    alpha: float = 1.0
    beta: float = 4.0
    epsilon: float = 0.1
    steps: int = 5
    learning_rate: float = 0.1
    norm: Literal["l2", "linf"] = "l2"

    def __post_init__(self) -> None:
        for field in ("epsilon", "steps", "learning_rate"):
            if not getattr(self, field) > 0:
                raise BadInput(f"audit.search.{field} is {getattr(self, field)}; it must be above 0")
        for field in ("alpha", "beta"):
            if getattr(self, field) < 0:
                raise BadInput(f"audit.search.{field} is {getattr(self, field)}; it must be 0 or more")
        if self.alpha == 0 and self.beta == 0:
            raise BadInput("audit.search.alpha and audit.search.beta are both 0; at least one must be above 0")
        if self.norm not in ("l2", "linf"):
            raise BadInput(f"audit.search.norm is {self.norm!r}; allowed: l2, linf")
