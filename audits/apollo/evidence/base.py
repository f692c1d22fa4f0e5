"""The form of a kind of evidence: what it may ask of whom; and the registry ``KINDS``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from audits.apollo.evidence.parts import Arrays, Part, Walks
from audits.apollo.evidence.settings import SearchSettings
from audits.arrays import Bools, Ids
from audits.registry import Registry
from audits.seeds import Purpose, derive_seed, torch_generator

if TYPE_CHECKING:
    import torch
    from torch import nn

    from audits.queries.oracles import LabelOracle, PosteriorOracle

KINDS: Registry[type[Kind]] = Registry("kind of evidence", "audits.apollo.evidence")


@dataclass(frozen=True)
class Questions:
    """The candidates of one shard: ``x`` (K, D) flattened floats, ``y`` (K,), ``ids`` (K,), ``owner`` (K,) the target
    that each is asked of; ``shape`` of one point, ``value_range`` of the inputs, ``seed`` of the random directions,
    ``chunk`` of candidates through a model at once."""

    x: torch.Tensor
    y: torch.Tensor
    ids: Ids
    owner: Ids
    shape: tuple[int, ...]
    value_range: tuple[float, float] | None
    seed: int
    chunk: int = 128

    def directions(self, count: int = 2, purpose: str = Purpose.DIRECTION) -> torch.Tensor:
        """Return (K, ``count``, D) unit vectors, drawn from each point's own generator."""
        import torch

        drawn = [
            torch.randn(count, self.x.shape[1], generator=torch_generator(derive_seed(self.seed, purpose, int(point))))
            for point in self.ids
        ]
        way = torch.stack(drawn).to(self.x)
        found: torch.Tensor = way / torch.linalg.vector_norm(way, dim=-1, keepdim=True)
        return found


@dataclass(frozen=True)
class Group:
    """The shadows of one half: ``original`` and ``unlearned`` models; ``inside`` (m, K), trained on the candidate and
    then unlearned it; ``outside`` (m, K), never saw it."""

    original: Sequence[nn.Module]
    unlearned: Sequence[nn.Module]
    inside: Bools
    outside: Bools


@dataclass(frozen=True)
class Case:
    """One shard of candidates under one unlearning method, with all that its kind may use.

    ``online``, ``offline``: the shadows of both halves, None when the kind does not read them; ``labels``,
    ``posteriors``, ``logits``: access to each target by its index, empty beyond the kind's access; ``trace``: what
    ``Kind.trace`` returned; ``earlier``: parts that the kind comes ``after``; ``population``: points that no model saw
    (``owner`` is not read); ``budget``: label queries per candidate for kinds that choose their queries as they go.
    """

    questions: Questions
    settings: SearchSettings
    online: tuple[Group, Group] | None = None
    offline: tuple[Group, Group] | None = None
    labels: Mapping[int, LabelOracle] = field(default_factory=dict)
    posteriors: Mapping[int, PosteriorOracle] = field(default_factory=dict)
    logits: Mapping[int, PosteriorOracle] = field(default_factory=dict)
    trace: Arrays = field(default_factory=dict)
    earlier: Mapping[str, Part] = field(default_factory=dict)
    population: Questions | None = None
    budget: int = 21

    @property
    def shadows(self) -> tuple[Group, Group]:
        """The online shadows of both halves."""
        assert self.online is not None, "the kind has not declared that it reads online shadows"
        return self.online

    @property
    def offline_shadows(self) -> tuple[Group, Group]:
        """The offline shadows of both halves."""
        assert self.offline is not None, "the kind has not declared that it reads offline shadows"
        return self.offline

    @property
    def asked_population(self) -> Questions:
        """The population points."""
        assert self.population is not None, "the kind has not declared that it asks population points"
        return self.population


@dataclass(frozen=True)
class Kind(ABC):
    """One kind of evidence: what it reads, and how it is gathered.

    ``part``: the type of what is gathered; its access is the access to targets that gathering gets. ``reads``: shadows
    "online" and/or "offline"; ``settings``: which of "search", "budget", "population" decide the answers; ``after``:
    kinds whose parts it reads. A kind with ``traced`` splits the work: ``trace`` sees original shadows only, so that
    all unlearning methods share it, and ``gather`` asks along the trace; ``draws``: the shadows that it traces with,
    where they are not those that it reads.
    """

    name: ClassVar[str]
    part: ClassVar[type[Part]] = Walks
    reads: ClassVar[tuple[str, ...]] = ("online",)
    settings: ClassVar[tuple[str, ...]] = ("search",)
    after: ClassVar[tuple[str, ...]] = ()
    traced: ClassVar[bool] = False
    draws: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def originals(cls) -> tuple[str, ...]:
        """Return the shadows whose original models it sees."""
        return cls.draws or cls.reads

    def trace(self, case: Case) -> dict[str, NDArray[Any]]:
        """Return arrays that depend on the original shadows alone; they are stored and handed to ``gather``."""
        raise NotImplementedError(f"{self.name} is not traced")

    @abstractmethod
    def gather(self, case: Case) -> Part:
        """Ask pseudo-targets and targets and return the answers."""

    @classmethod
    @abstractmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        """Return how many queries a target gets for each candidate."""


def in_order(names: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds ``names`` and those that they come after, each once, every kind behind what it reads."""
    found: list[str] = []

    def add(name: str) -> None:
        for earlier in KINDS[name].after:
            add(earlier)
        if name not in found:
            found.append(name)

    for name in names:
        add(name)
    return tuple(found)
