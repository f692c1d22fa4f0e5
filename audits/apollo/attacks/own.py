"""Attacks of Apollo of users' own."""

from __future__ import annotations

from typing import Any, get_args

from audits.apollo.attacks.base import Attack
from audits.apollo.evidence.base import KINDS
from audits.apollo.evidence.parts import SHOWN
from audits.errors import BadInput, did_you_mean
from audits.own.subclasses import must_be_one_of, subclass
from audits.queries.access import Access


def adapted(found: Any, name: str, module: str = "") -> type[Attack]:
    """Return the attack behind the object ``found``, which a plan calls ``name``; ``module`` offers it."""
    attack = subclass(found, name, Attack, "attack", module)
    must_be_one_of(attack, "attack", "access", get_args(Access))
    reads = getattr(attack, "reads", ())
    if not isinstance(reads, tuple) or not reads:
        raise BadInput(f"attack {name} has reads {reads!r}; needed: a tuple of kinds of evidence: {', '.join(KINDS)}")
    for kind in reads:
        if kind not in KINDS:
            raise BadInput(f"attack {name} reads {kind!r}{did_you_mean(kind, KINDS)}; allowed: {', '.join(KINDS)}")
        if KINDS[kind].part.access not in SHOWN[attack.access]:
            raise BadInput(
                f"attack {name} reads {kind!r}, which takes access {KINDS[kind].part.access!r}, but has access "
                f"{attack.access!r}; declare what it takes"
            )
    return attack
