"""Work that is done once, whatever drivers share a store."""

from __future__ import annotations

from collections.abc import Callable

from actors.jobs import Elsewhere
from orchestrator.engine.store.owner import Owner
from orchestrator.engine.store.store import Store


def do_once(store: Store, stage: str, key: str, owner: Owner, work: Callable[[], None]) -> None:
    """Do ``work``, which puts the artefact ``key``, unless somebody did it meanwhile.

    Raises Elsewhere while another driver than ``owner`` does it.
    """
    claim = store.claims.take(stage, key, owner)
    if isinstance(claim, Owner):
        raise Elsewhere(f"job {stage}/{key} is being done for {claim}")
    with claim:
        if not store.has(stage, key):
            work()
