"""The kinds of fault, and a draw of some of them: which, in which run, at which moment; all by one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

START, RAY, MODELS, ATTACKS, END = MOMENTS = ("start", "Ray starts", "models", "attacks", "summing up")

KINDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "kill -9 worker": (16, (MODELS, ATTACKS)),
    "kill -9 of a process of Ray": (16, (MODELS, ATTACKS)),
    "kill -9 driver": (14, (START, RAY, MODELS, ATTACKS, END)),
    "worker stopped for a minute": (6, (MODELS, ATTACKS)),
    "driver stopped for a minute": (5, (MODELS, ATTACKS)),
    "Ctrl-C": (14, (START, RAY, MODELS, ATTACKS, END)),
    "tracking server gone": (5, (END,)),
    "tracking server hangs": (4, (END,)),
    "S3 answers 500 for 20 s": (8, (MODELS, ATTACKS, END)),
    "disk full": (8, (MODELS, ATTACKS, END)),
    "two drivers at once": (4, (MODELS,)),
}
"""Kind → how many of a hundred, and when it may strike."""

PLACES = {"S3 answers 500 for 20 s": "s3", "disk full": "tmpfs", "two drivers at once": "pair"}
OF_RAY = ("ray::TrainController", "ray::QueueServer", "raylet/raylet", "gcs_server")
WORK = ("apollo", "tmia", "gnq", "sweep")
A_RUN = {"disk": 5, "s3": 4, "tmpfs": 4, "pair": 1}
"""Place of the store → faults that strike one run, one after another."""


@dataclass
class Fault:
    """One fault; what is after ``chance`` is found out."""

    number: int
    kind: str
    moment: str
    after: int
    chance: float
    struck: str = ""
    at: float = 0.0
    by_itself: bool = False
    lost: float = 0.0
    twice: int = 0
    left: list[str] = field(default_factory=list)
    equal: bool | None = None
    problems: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return what is known of it in one line."""
        how = "goes on by itself" if self.by_itself else "the same command goes on"
        told = f"{self.kind} ({self.struck or 'not struck'}): {how}, {self.lost:.0f} s lost, {len(self.left)} left"
        return f"{self.number:3d} {told}{''.join(f'; {text}' for text in (*self.left, *self.problems))}"


@dataclass(frozen=True)
class Scenario:
    """A run of ``work`` by ``engine`` with its store at ``place``, and the faults that strike it in turn."""

    number: int
    work: str
    engine: str
    place: str
    faults: Sequence[Fault]


def draw(seed: int, count: int, only: str | None = None) -> list[Scenario]:
    """Return ``count`` faults in runs; kinds in their shares (largest remainders), the rest by ``seed``."""
    numbers = random.Random(seed)
    kinds = {kind: share for kind, (share, _) in KINDS.items() if only is None or only in kind}
    exact = {kind: count * share / sum(kinds.values()) for kind, share in kinds.items()}
    number_of = {kind: int(value) for kind, value in exact.items()}
    rest = sorted(exact, key=lambda kind: number_of[kind] - exact[kind])
    for kind in rest[: count - sum(number_of.values())]:
        number_of[kind] += 1
    drawn: dict[str, list[Fault]] = {place: [] for place in A_RUN}
    for kind, times in number_of.items():
        for nth in range(times):
            moments = KINDS[kind][1]
            moment = moments[(nth + seed) % len(moments)]
            fault = Fault(0, kind, moment, numbers.randint(1, 3), numbers.random())
            drawn[PLACES.get(kind, "disk")].append(fault)
    scenarios: list[Scenario] = []
    number = 0
    for place, faults in drawn.items():
        numbers.shuffle(faults)
        runs = -(-len(faults) // A_RUN[place])
        for nth in range(runs):
            own = sorted(faults[nth::runs], key=lambda fault: (MOMENTS.index(fault.moment), "tracking" in fault.kind))
            for fault in own:
                number += 1
                fault.number = number
            work = WORK[(len(scenarios) + seed) % len(WORK)]
            scenarios.append(Scenario(len(scenarios), work, numbers.choice(("train", "actors")), place, own))
    numbers.shuffle(scenarios)
    return scenarios
