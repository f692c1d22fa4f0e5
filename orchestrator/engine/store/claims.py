"""Claims: of several drivers on one store one does a job, and the others leave it to that one.

A claim is a file of its own, ``claims/<stage>.<key>.<random>.json``. Whoever wants a job writes its claim, then lists
the claims of that key; whoever sees another driver's living claim removes its own and tries again after a random pause.
Of two that both wrote before they listed, each sees the other, so no two ever hold one job, provided that a listing
shows what was written before it began (strong consistency: disks, S3, GCS, Azure). The holder renews its claim. A claim
is stale when it did not change for ``STALE_SECONDS`` of the watcher's own clock, or its driver, on this machine, is no
more; a stale claim counts for nothing.
"""

from __future__ import annotations

import json
import logging
import random
import secrets
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from audits.errors import BadInput
from audits.plain_json import from_json
from orchestrator.engine.store.faults import StoreSilent, one_line
from orchestrator.engine.store.owner import Owner
from orchestrator.engine.store.places import CLAIMS
from orchestrator.engine.store.storage import Storage

BEAT_SECONDS = 5.0
STALE_SECONDS = 60.0
_ATTEMPTS = 5
_PAUSE = 0.05

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Claim:
    """A job that this process holds for ``owner``; as a context it is renewed meanwhile and given back at the end."""

    storage: Storage
    name: str
    owner: Owner
    beat: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: bool = False

    def write(self) -> None:
        """Write the claim, with the next beat; one that was given back is not written again."""
        with self.lock:
            if not self.over:
                self.beat += 1
                content = {"owner": self.owner.to_json(), "beat": self.beat}
                self.storage.publish(CLAIMS, {self.name: json.dumps(content).encode()})

    def release(self) -> None:
        """Give the job back."""
        with self.lock:
            self.over = True
            self.storage.remove_file(f"{CLAIMS}/{self.name}")

    def __enter__(self) -> Claim:
        _HEART.keep(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.release()
            return
        with suppress(BadInput, StoreSilent, OSError):  # what broke the job counts, not the claim that it leaves
            self.release()


class _Heart:
    """Renews the claims of this process, in one thread that ends with it."""

    def __init__(self) -> None:
        self.claims: weakref.WeakSet[Claim] = weakref.WeakSet()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def keep(self, claim: Claim) -> None:
        with self.lock:
            self.claims.add(claim)
            if self.thread is None or not self.thread.is_alive():  # none, or left behind by a fork
                self.thread = threading.Thread(target=self.beat, name="claims", daemon=True)
                self.thread.start()

    def beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            with self.lock:
                held = [claim for claim in self.claims if not claim.over]
                self.claims = weakref.WeakSet(held)
            for claim in held:
                try:
                    claim.write()
                except Exception as error:  # the job goes on: at the worst somebody else does it too
                    _log.warning("the claim %s cannot be renewed: %s", claim.name, one_line(error))


_HEART = _Heart()


@dataclass
class Claims:
    """The claims in a storage, as one process sees them."""

    storage: Storage
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Claim → its last beat, and when this process first saw that."""

    def take(self, stage: str, key: str, owner: Owner) -> Claim | Owner:
        """Return a claim of the job for ``owner``, or who holds it.

        Claims of ``owner`` itself count for nothing: within a run the queue hands a job out once, and again only after
        its worker is lost.
        """
        rival: Owner | None = None
        for attempt in range(_ATTEMPTS):
            rival, _ = self.look(stage, key, owner)
            if rival:
                return rival
            claim = Claim(self.storage, f"{stage}.{key}.{secrets.token_hex(8)}.json", owner)
            try:
                claim.write()
                rival, void = self.look(stage, key, owner, but=claim.name)
                if rival is None:
                    for name in void:
                        self.storage.remove_file(f"{CLAIMS}/{name}")
                        self.seen.pop(name, None)
                    return claim
            except BaseException:
                with suppress(BadInput, StoreSilent, OSError):
                    claim.release()
                raise
            claim.release()
            self.sleep(random.uniform(0.0, _PAUSE * 2**attempt))
        assert rival is not None
        return rival

    def look(self, stage: str, key: str, owner: Owner, but: str = "") -> tuple[Owner | None, list[str]]:
        """Return the holder of a living claim of the job that is not of ``owner``, and the claims that count nothing.

        ``but``: the claim that is left out.
        """
        rival, void = None, []
        for entry in self.storage.walk(CLAIMS):
            name = entry.path.rpartition("/")[2]
            if name == but or not name.startswith(f"{stage}.{key}."):
                continue
            if (found := self.read(entry.path)) is None:
                continue
            holder, beat = found
            if holder.id == owner.id or self.stale(name, beat) or holder.gone():
                void.append(name)
            else:
                rival = holder
        return rival, void

    def read(self, path: str) -> tuple[Owner, int] | None:
        """Return owner and beat of a claim; None for one that was given back since the listing."""
        try:
            content = from_json(self.storage.read(path))
            return Owner(**content["owner"]), content["beat"]
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            return Owner("an unknown host", "", 0, "", ""), 0

    def stale(self, name: str, beat: int) -> bool:
        """Say whether this process has seen the same beat of a claim for ``STALE_SECONDS``."""
        last, since = self.seen.get(name, (None, 0.0))
        if last != beat:
            self.seen[name] = (beat, self.clock())
            return False
        return self.clock() - since >= STALE_SECONDS

    def forget_the_dead(self) -> None:
        """Remove the claims of drivers that ended on this machine, which workers on others would hold for alive."""
        for entry in self.storage.walk(CLAIMS):
            if (found := self.read(entry.path)) and found[0].gone():
                self.storage.remove_file(entry.path)
