"""The exposure list of a run, and what became of the promised false discovery rate."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.report.forget_requests import request_rows
from orchestrator.report.glossary import access_level, words
from orchestrator.report.reading import Row, Run, percent

if TYPE_CHECKING:
    from audits.data.dataset import Dataset

Images = Mapping[int, NDArray[Any]]
MOST_POINTS = 12
MOST_PIXELS = 64


def exposure(run: Run, images: Images | None = None) -> dict[str, Any] | None:
    """Return what the page shows of the exposure list: per unlearner its clearest points, with thumbnails where given.

    ``images``: point id → (H, W), (3, H, W) or (H, W, 3); floats from 0 to 1 or uint8. None for results without a list.
    """
    exposed = run.result.get("exposed")
    if not exposed:
        return None
    requests = request_rows(run)
    blocks: list[dict[str, Any]] = []
    for name in run.unlearners:
        points = [point for point in exposed["points"] if point["unlearner"] == name]
        shown = [
            point
            | {"image": thumbnail(images[point["point_id"]]) if images and point["point_id"] in images else ""}
            | {"gnq": percent(requests.get((point["target"], point["point_id"]), {}).get("percentile"), 0)}
            for point in points[:MOST_POINTS]
        ]
        if shown:
            blocks.append({"name": words(name), "points": shown, "all": len(points)})
    return {
        "attack": words(exposed["attack"]),
        "fdr": f"{exposed['fdr'] * 100:g} %",
        "blocks": blocks,
        "gnq": bool(requests),
        "images": any(point["image"] for block in blocks for point in block["points"]),
    }


def shown_images(exposed: Mapping[str, Any], data: Dataset) -> dict[int, NDArray[np.uint8]]:
    """Return the pixels of the points that the page lists, by id; see ``pixels_of``."""
    by_method: dict[str, list[int]] = {}
    for point in exposed["points"]:
        by_method.setdefault(point["unlearner"], []).append(int(point["point_id"]))
    return pixels_of(sorted({point for points in by_method.values() for point in points[:MOST_POINTS]}), data)


def pixels_of(ids: Sequence[int], data: Dataset) -> dict[int, NDArray[np.uint8]]:
    """Return the pixels of the points ``ids`` by id; none where the data are not grey or coloured images.

    Values are scaled to 0 to 255 from the data's range; images larger than ``MOST_PIXELS`` are thinned out to it.
    """
    if not ids or len(data.shape) != 3 or data.shape[0] not in (1, 3) or data.value_range is None:
        return {}
    low, high = data.value_range
    step = -(-max(data.shape[1:]) // MOST_PIXELS)
    pixels = (data.tensors(np.array(ids)).all()[0][:, :, ::step, ::step].double() - low) / (high - low)
    scaled = (pixels.clamp(0.0, 1.0) * 255).round().numpy().astype(np.uint8)
    return dict(zip(ids, scaled, strict=True))


def promises(run: Run) -> list[Row]:
    """Return the discoveries of the main setting, by access and in the order of the table; none for older results."""
    rows = [row for row in run.result.get("discoveries") or [] if row["setting"] == run.main_setting]
    return sorted(rows, key=lambda row: (run.unlearners.index(row["unlearner"]), access_level(row["access"])))


def thumbnail(image: NDArray[Any]) -> str:
    """Return an image as a PNG in a ``data:`` address: the same bytes for the same pixels."""
    from matplotlib.image import imsave

    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3):
        pixels = pixels.transpose(1, 2, 0)
    pixels = pixels.squeeze(-1) if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    top = 255 if pixels.dtype == np.uint8 else 1.0
    buffer = BytesIO()
    scaled = np.clip(pixels.astype(np.float64) / top, 0.0, 1.0)
    undated: dict[str, Any] = {"Software": None}
    imsave(buffer, scaled, cmap="gray", vmin=0.0, vmax=1.0, format="png", metadata=undated)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
