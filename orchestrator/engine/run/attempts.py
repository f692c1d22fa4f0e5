"""Attacks that raise: one costs its own rows, not the run, and is tried again by the next run."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from audits.errors import BadInput, ServerSilent
from audits.memory import out_of_memory
from orchestrator.engine.store.faults import FAULTS
from orchestrator.engine.store.payloads import pack_json

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

R = TypeVar("R")
FAILED = "failed.json"
"""The file of a stage's artefact that says which attacks failed, and why; there is none where all came to an end."""


@dataclass
class Attempts:
    """The attacks of one job: ``failed`` maps the names of those that raised to what they raised."""

    failed: dict[str, Exception] = field(default_factory=dict)

    def of(self, name: str, work: Callable[[], R]) -> R | None:
        """Return ``work()``; None where it raises an exception, which is kept under ``name``.

        Trouble with the store or with a served model is no attack's, and raised: a damaged artefact must not pass for
        an attack that failed.
        """
        try:
            return work()
        except (*FAULTS, ServerSilent):
            raise
        except Exception as error:  # an attack may be anybody's code, and what it raises anything
            self.failed[name] = error
            return None

    def files(self) -> dict[str, bytes]:
        """Return the file of the failed attacks; nothing where none failed."""
        if not self.failed:
            return {}
        told = {
            name: {"error": in_words(error), "traceback": "".join(traceback.format_exception(error))}
            for name, error in self.failed.items()
        }
        return {FAILED: pack_json(told)}

    def require_one(self, attacks: Sequence[str]) -> None:
        """Raise where all ``attacks`` failed: BadInput if each of them said so, else the first other exception."""
        if len(self.failed) < len(attacks):
            return
        other = [error for error in self.failed.values() if not isinstance(error, BadInput)]
        if other:
            raise other[0]
        raise BadInput("; ".join(f"attack {name} failed: {error}" for name, error in self.failed.items()))


@dataclass(frozen=True)
class FailedAttack:
    """An attack without a result: ``label`` is that of its job (an unlearner, an arm), ``error`` one line."""

    setting: str
    label: str
    attack: str
    error: str


def failed_attacks(settings: Sequence[Setting], store: Store) -> list[FailedAttack]:
    """Return the attacks that failed in jobs of stage score, each once for a setting and label."""
    found: dict[tuple[str, str, str], FailedAttack] = {}
    for setting in settings:
        for job in setting.of("score"):
            for attack, told in failures_of(store, job.stage, job.key).items():
                found.setdefault(
                    (setting.name, job.label, attack), FailedAttack(setting.name, job.label, attack, told["error"])
                )
    return list(found.values())


def failures_of(store: Store, stage: str, key: str) -> dict[str, Any]:
    """Return attack → error and traceback of a finished job; {} where all attacks came to an end."""
    artefact = store.get(stage, key)
    return json.loads(artefact.read(FAILED)) if FAILED in artefact.files else {}


def failure_warnings(failed: Sequence[FailedAttack], settings: int) -> list[str]:
    """Return a warning for each failed attack; ``settings``: how many the run has."""
    lines = []
    for each in failed:
        places = [*([f"against {each.label}"] if each.label else []), *([f"in {each.setting}"] if settings > 1 else [])]
        where = "".join(f" {place}" for place in places)
        lines.append(f"attack {each.attack} failed{where} and has no result there: {each.error}")
    return lines


def in_words(error: Exception) -> str:
    """Return an exception on one line; one that is not for users is named."""
    text = next(iter(str(error).strip().splitlines()), "")
    if isinstance(error, BadInput | FloatingPointError):
        return text
    if out_of_memory(error):
        return f"out of memory, with single points and models too ({text or type(error).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
