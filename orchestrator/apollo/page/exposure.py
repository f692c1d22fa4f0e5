"""Deleted points that are still detectable one by one, with thumbnails where there are some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orchestrator.apollo.page.forget_requests import requests_by_point
from orchestrator.apollo.page.promises import void_title
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import ExposedPoint, ExposureList
from orchestrator.apollo.result.words import words
from orchestrator.report.grid import Entry, Grid, grid, left
from orchestrator.report.numbers import VOID, number, percent
from orchestrator.report.pictures import MOST_POINTS, Images, pixels_of, thumbnail

if TYPE_CHECKING:
    from audits.data.dataset import Dataset


def exposure_grid(run: ApolloRun, images: Images) -> Grid | None:
    """Return the clearest points of each unlearner, with their pictures; None where none is found.

    ``images``: point id → (H, W), (3, H, W) or (H, W, 3); floats from 0 to 1 or uint8.
    """
    exposed = run.result.exposed
    if not exposed or not exposed.points:
        return None
    requests = requests_by_point(run)
    pictured = any(point.point_id in images for points in shown_points(exposed).values() for point in points)
    body = []
    for name in run.unlearners:
        shown = shown_points(exposed).get(name, [])
        found = sum(point.unlearner == name for point in exposed.points)
        for point in shown:
            image = thumbnail(images[point.point_id]) if point.point_id in images else ""
            request = requests.get((point.target, point.point_id))
            body.append(
                [
                    Entry(words(name), f"{len(shown)} of {found}"),
                    *([Entry(f"point {point.point_id}" if image else "", image=image)] if pictured else []),
                    str(point.point_id),
                    str(point.label),
                    str(point.target),
                    number(point.score),
                    VOID if point.void else f"{point.p:.4f}",
                    VOID if point.void else number(point.q),
                    *([percent(request.percentile if request else None, 0)] if requests else []),
                ]
            )
    columns = [left("unlearning", merge=True), *([""] if pictured else []), "point", "label", "target"]
    columns += ["score", "p", "q", *(["GNQ,\npercentile"] if requests else [])]
    title = run.result.headed(f"Deleted points that {words(exposed.attack)} finds one by one")
    return grid("exposed", void_title(title, any(point.void for point in exposed.points)), columns, body)


def shown_points(exposed: ExposureList) -> dict[str, list[ExposedPoint]]:
    """Return the points that the page lists, clearest first, by unlearner."""
    found: dict[str, list[ExposedPoint]] = {}
    for point in exposed.points:
        found.setdefault(point.unlearner, []).append(point)
    return {name: points[:MOST_POINTS] for name, points in found.items()}


def shown_images(exposed: ExposureList | None, data: Dataset) -> dict[int, NDArray[np.uint8]]:
    """Return the pixels of the points that the page lists, by id; see ``pixels_of``."""
    points = shown_points(exposed).values() if exposed else ()
    return pixels_of(sorted({point.point_id for each in points for point in each}), data)
