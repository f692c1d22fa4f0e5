"""Kinds of evidence by name; importing this package fills the registry ``KINDS``."""

from audits.evidence import (
    adversarial,
    boundary,
    logits,
    offline,
    oslo,
    plus,
    point,
    population,
    posteriors,
    random_directions,
    yoqo,
)
from audits.evidence.base import KINDS, Case, Group, Kind, Questions, in_order
from audits.evidence.boundary import Distances
from audits.evidence.logits import Logits
from audits.evidence.parts import Evidence, Part, Posteriors, Walks
from audits.evidence.population import Population
from audits.evidence.settings import SearchSettings

__all__ = [
    "KINDS",
    "Case",
    "Distances",
    "Evidence",
    "Group",
    "Kind",
    "Logits",
    "Part",
    "Population",
    "Posteriors",
    "Questions",
    "SearchSettings",
    "Walks",
    "adversarial",
    "boundary",
    "in_order",
    "logits",
    "offline",
    "oslo",
    "plus",
    "point",
    "population",
    "posteriors",
    "random_directions",
    "yoqo",
]
