"""Requests that are made again while an object store fails to answer, with growing pauses and an end."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from orchestrator.engine.store.faults import StoreSilent, one_line

LIMIT = 60.0
"""Seconds for which one request is made again."""
SHORT = 5.0
"""The same for commands that only look, and lose nothing when they end."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 8.0
TELL_AFTER = 4.0
"""Seconds of silence after which one line says what is being waited for."""

R = TypeVar("R")

_PASSING = re.compile(
    r"HTTP status (?:408|429|50[02-9])|InternalError|SlowDown|ServiceUnavailable|\bUNAVAILABLE\b|DEADLINE_EXCEEDED|"
    r"AWS Error (?:INTERNAL_FAILURE|SERVICE_UNAVAILABLE|SLOW_DOWN|THROTTLING|REQUEST_TIMEOUT|NETWORK_CONNECTION)"
)
_NO_HOST = re.compile(r"curlCode: (?:5|6),")
_NEVER_PASSES = re.compile(r"curlCode: (?:3|51|58|60|77|83|90|91),")  # an address or a certificate that is wrong

_log = logging.getLogger(__name__)


@dataclass
class Patience:
    """Makes requests to the store at ``place`` (as shown to the user) until one is answered.

    A fault that may pass (5xx, a dropped connection, a timeout) is tried again for ``limit`` seconds, then StoreSilent
    is raised; every other exception is raised at once. A host without an address is the user's mistake until the store
    has answered once.
    """

    place: str
    limit: float = LIMIT
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    answered: bool = False

    def ask(self, request: Callable[[], R]) -> R:
        """Return the answer to ``request``, which must be safe to repeat."""
        begin, pause, told = self.clock(), FIRST_PAUSE, False
        while True:
            try:
                answer = request()
            except OSError as error:
                if not self.may_pass(error):
                    raise
                waited = self.clock() - begin
                if waited >= self.limit:
                    raise StoreSilent(
                        f"the store {self.place} did not answer for {waited:.0f} s: {cause(error)}; nothing "
                        "finished is lost; run the same command again"
                    ) from error
                if waited >= TELL_AFTER and not told:
                    told = True
                    _log.warning(
                        "the store %s does not answer (%s); trying again for %.0f s",
                        self.place,
                        cause(error),
                        self.limit - waited,
                    )
                self.sleep(min(pause * random.uniform(0.5, 1.0), self.limit - waited))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self.answered = True
                return answer

    def may_pass(self, error: OSError) -> bool:
        """Say whether the same request may be answered later."""
        if isinstance(error, ConnectionError | TimeoutError):
            return True
        text = str(error)
        if _NO_HOST.search(text):
            return self.answered
        return bool(_PASSING.search(text)) and not _NEVER_PASSES.search(text)


def cause(error: OSError) -> str:
    """Return what the store answered, in one line, without pyarrow's long words about which key was asked for."""
    text = one_line(error, limit=1000)
    return one_line(OSError(text[max(text.find("AWS Error"), 0) :]))
