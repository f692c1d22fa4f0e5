"""The points of a plan's data set, as lists of points name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from audits.data.catalogue import encoded, load
from audits.data.ids import Points, folder_of

if TYPE_CHECKING:
    from audits.data.dataset import Description
    from orchestrator.engine.plan.sections import Data


def points_in(data: Data, facts: Description) -> Points:
    """Return the points of a data set as lists name them; its names are read only if a list has some.

    Images are not decoded for it.
    """

    def names() -> Sequence[str] | None:
        images = encoded(data.name, data.root)
        return load(data.name, data.root).names if images is None else images.images.names

    return Points(facts.points, names, folder_of(data.name, data.root))
