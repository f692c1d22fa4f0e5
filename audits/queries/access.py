"""The levels of access to a target that an attack may declare."""

from __future__ import annotations

from typing import Literal

Access = Literal["labels", "posteriors", "logits", "oracle"]
"""Each level shows what the one before shows; "oracle" shows posteriors and the truth about other candidates."""
