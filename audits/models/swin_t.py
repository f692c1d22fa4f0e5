"""Swin-T (Liu et al., arXiv 2103.14030): torchvision's transformer with patches for small or for large images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from audits.errors import BadInput
from audits.models.base import MODELS, Architecture, check_choice, image_shape

PATCH_AND_WINDOW = {"cifar": (2, 4), "imagenet": (4, 7)}
HEAD = 32  # channels of one attention head
MERGES = 3  # a merge after each stage but the last halves the grid of patches


@MODELS.register("swin_t")
@dataclass(frozen=True)
class SwinT(Architecture):
    """Four stages of shifted-window attention; ``width`` channels at first (96 in the paper), doubled at each stage.

    ``stem`` "imagenet" has the paper's patches of 4×4 pixels and windows of 7×7 patches; "cifar" has patches of 2×2 and
    windows of 4×4, which keep 16×16 patches of a 32×32 image. ``depths``: blocks of each stage; ``stochastic_depth``:
    the chance, rising from 0 to this, with which a block is skipped for a point while training (0.2 in the paper).
    """

    recordable: ClassVar[bool] = True

    width: int = 96
    stem: Literal["cifar", "imagenet"] = "cifar"
    depths: tuple[int, ...] = (2, 2, 6, 2)
    stochastic_depth: float = 0.2

    def __post_init__(self) -> None:
        if self.width < 1 or (self.width > HEAD and self.width % HEAD):
            raise BadInput(f"model.settings.width is {self.width}; allowed: 1 to {HEAD}, or a multiple of {HEAD}")
        check_choice("stem", self.stem, tuple(PATCH_AND_WINDOW))
        if len(self.depths) != MERGES + 1 or min(self.depths) < 1:
            raise BadInput(f"model.settings.depths is {list(self.depths)}; give four whole numbers of 1 or more")
        if not 0 <= self.stochastic_depth < 1:
            raise BadInput(
                f"model.settings.stochastic_depth is {self.stochastic_depth}; allowed: 0 up to, but not including, 1"
            )

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        from torchvision.models import SwinTransformer

        channels, height, breadth = image_shape(self.name, shape)
        patch, window = PATCH_AND_WINDOW[self.stem]
        if height % patch or breadth % patch or min(height, breadth) // patch <= 2 ** (MERGES - 1):
            raise BadInput(
                f"model.settings.stem is {self.stem}, which cuts images into patches of {patch}×{patch} and halves "
                f"their grid three times: it cannot read {height}×{breadth}; give sides of {patch * 5} or more that "
                f"{patch} divides"
            )
        heads = max(1, self.width // HEAD)
        model: nn.Module = SwinTransformer(
            patch_size=[patch, patch],
            embed_dim=self.width,
            depths=list(self.depths),
            num_heads=[heads * 2**stage for stage in range(MERGES + 1)],
            window_size=[window, window],
            stochastic_depth_prob=self.stochastic_depth,
            num_classes=classes,
        )
        if channels != 3:
            model.get_submodule("features.0")[0] = nn.Conv2d(channels, self.width, patch, patch)  # type: ignore[operator]  # it is a Sequential
        return model
