"""Images that are decoded batch by batch: what stands in for a tensor that would take too much memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.arrays import Ids
from audits.data.ahead import Begun, ahead, begun
from audits.data.image_files import Images, Seen
from audits.memory import of_machine

if TYPE_CHECKING:
    import torch

SHARE = 0.25  # of the memory that a set of images may take decoded
AHEAD = 3  # batches that are decoded before their turn
AT_ONCE = 4  # images that a thread takes up


class Undecoded:
    """Stands for a uint8 tensor (N, C, H, W) on a device and takes no memory: rows are made when asked for.

    Rows are those of the tensor bit for bit. It knows what training, unlearning and attacks ask of the inputs of a
    ``TensorSet``: length, rows, ``split``, ``float``, and ``torch.cat`` with others of its kind or tensors.
    """

    def __init__(self, parts: Sequence[Files | torch.Tensor | Undecoded]) -> None:
        self.parts = tuple(parts)

    @property
    def dtype(self) -> torch.dtype:
        """uint8, as of images in memory."""
        import torch

        return torch.uint8

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitem__(self, rows: torch.Tensor | slice) -> torch.Tensor:
        """Return ``rows``, in that order."""
        return self.begin(rows).result()

    def begin(self, rows: torch.Tensor | slice, views: Seen | None = None) -> Begun[torch.Tensor]:
        """Begin to decode ``rows``, or ``views`` of them, which the result has in that order."""
        import torch

        wanted = torch.arange(len(self))[rows if isinstance(rows, slice) else rows.cpu()]
        if len(self.parts) == 1:
            return _begin(self.parts[0], wanted, views)
        order, found, start = [], [], 0
        for part in self.parts:
            places = torch.nonzero((wanted >= start) & (wanted < start + len(part))).flatten()
            order.append(places)
            found.append(_begin(part, wanted[places] - start, views))
            start += len(part)

        def joined() -> torch.Tensor:
            return torch.cat([part.finish() for part in found])[torch.cat(order).argsort()]

        return Begun([task for part in found for task in part.tasks], joined)

    def ahead(self, parts: Iterable[torch.Tensor], views: Seen | None = None) -> Iterator[torch.Tensor]:
        """Yield the rows of each part, decoded while the caller still works on those before: up to ``AHEAD`` parts."""
        return ahead(lambda rows: self.begin(rows, views), parts, AHEAD)

    def split(self, size: int) -> Iterator[torch.Tensor]:
        """Yield all rows, ``size`` at a time."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def float(self) -> torch.Tensor:
        """Return all rows as float32: for sets of few points."""
        return self[:].float()

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Let ``torch.cat`` join without decoding; torch refuses every other function."""
        import torch

        return cls(args[0]) if function is torch.cat and len(args) == 1 and not kwargs else NotImplemented


class Files:
    """The rows ``ids`` of ``images``, decoded when they are asked for and put on ``device``."""

    def __init__(self, images: Images, ids: Ids, device: str) -> None:
        self.images = images
        self.ids = ids
        self.device = device

    def __len__(self) -> int:
        return len(self.ids)

    def begin(self, rows: torch.Tensor, views: Seen | None = None) -> Begun[torch.Tensor]:
        """Begin to decode ``rows``, a few in a thread; to a GPU they go through pinned memory, and nothing waits."""
        import torch

        chosen: list[int] = np.take(self.ids, rows.numpy()).tolist()
        shape = (len(chosen), *self.images.point_shape)
        decoded = torch.empty(shape, dtype=torch.uint8, pin_memory=self.device.startswith("cuda"))
        array = decoded.numpy()

        def fill(start: int) -> None:
            for place in range(start, min(start + AT_ONCE, len(chosen))):
                row = chosen[place]
                array[place] = self.images.image(row) if views is None else views.image(self.images, row)

        return begun(fill, range(0, len(chosen), AT_ONCE), lambda: decoded.to(self.device, non_blocking=True))


def _begin(part: Files | torch.Tensor | Undecoded, rows: torch.Tensor, views: Seen | None) -> Begun[torch.Tensor]:
    """Begin to make ``rows`` of a part; those of a tensor are there, and seen as they are."""
    if isinstance(part, Files | Undecoded):
        return part.begin(rows, views)
    held = part
    return Begun((), lambda: held[rows.to(held.device)])


def too_large(shape: Sequence[int], device: str) -> bool:
    """Return whether uint8 images of ``shape`` would take more than ``SHARE`` of the memory of device or machine."""
    return math.prod(shape) > SHARE * memory(device)


def memory(device: str) -> int:
    """Return the bytes of memory of this machine or, if it has less, of the GPU ``device``."""
    import torch

    host = of_machine()
    return min(host, torch.cuda.get_device_properties(device).total_memory) if device.startswith("cuda") else host
