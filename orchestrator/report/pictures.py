"""Thumbnails of data points for a page."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from audits.data.dataset import Dataset

Images = Mapping[int, NDArray[Any]]


MOST_POINTS = 12


MOST_PIXELS = 64


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
