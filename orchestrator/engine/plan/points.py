"""The points of a plan's data set, as lists of points name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.data.catalogue import load
from audits.data.ids import Points, folder_of

if TYPE_CHECKING:
    from audits.data.dataset import Description
    from orchestrator.engine.plan.sections import Data


def points_in(data: Data, facts: Description) -> Points:
    """Return the points of a data set as lists name them; its names are read only if a list has some."""
    return Points(facts.points, lambda: load(data.name, data.root).names, folder_of(data.name, data.root))
