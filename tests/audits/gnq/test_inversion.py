"""Model inversion: what is minimised, what is found, and how likeness to a training image is measured."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter
from torch import nn

from audits.data.catalogue import load
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gnq.inversion import InversionSettings, compare, invert, mse, ssim, total_variation
from audits.models import make_model
from audits.training.fit import fit
from audits.training.recipe import Recipe

SEED = 2
CLASSES, HEIGHT, WIDTH = 3, 14, 12
SETTINGS = InversionSettings(steps=60, learning_rate=0.05, starts=2)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def faces(points: int = 30) -> TensorSet:
    """Return noisy images of three classes, each bright in a band of its own."""
    y = torch.arange(points) % CLASSES
    x = 0.4 * drawn(points, 1, HEIGHT, WIDTH, seed=SEED)
    for point, label in enumerate(y.tolist()):
        x[point, :, 4 * label + 1 : 4 * label + 5] += 0.5
    return TensorSet(x, y)


def linear_softmax(data: TensorSet) -> nn.Module:
    model = make_model("mlp", {"hidden": []}).build((1, HEIGHT, WIDTH), CLASSES, SEED).double()
    return fit(model, data, Recipe(epochs=20, batch_size=10), seed=SEED)


def class_means(data: TensorSet) -> torch.Tensor:
    return torch.stack([data.x[data.y == label].mean(0) for label in range(CLASSES)])


def slow_ssim(a: np.ndarray, b: np.ndarray, width: float) -> float:
    """Return SSIM of two images (H, W) as scikit-image works it out, by SciPy's gaussian filter."""

    def blurred(image: np.ndarray) -> np.ndarray:
        return gaussian_filter(image, 1.5, truncate=3.5)[5:-5, 5:-5]

    ma, mb = blurred(a), blurred(b)
    va, vb, vab = blurred(a * a) - ma * ma, blurred(b * b) - mb * mb, blurred(a * b) - ma * mb
    c1, c2 = (0.01 * width) ** 2, (0.03 * width) ** 2
    luminance = (2 * ma * mb + c1) / (ma**2 + mb**2 + c1)
    structure = (2 * vab + c2) / (va + vb + c2)
    return float((luminance * structure).mean())


def test_ssim_is_that_of_a_gaussian_filter() -> None:
    a, b = drawn(2, 3, 2, 17, 13), drawn(2, 3, 2, 17, 13, seed=1)
    b = 0.7 * a + 0.3 * b
    for low, high in ((0.0, 1.0), (-1.0, 2.0)):
        slow = np.zeros((2, 3))
        for i, j, channel in np.ndindex(2, 3, 2):
            slow[i, j] += slow_ssim(a[i, j, channel].numpy(), b[i, j, channel].numpy(), high - low) / 2
        np.testing.assert_allclose(ssim(a, b, (low, high)), slow, rtol=1e-12)


def test_ssim_and_mse_have_their_identities() -> None:
    a, b = drawn(4, 1, 14, 12), drawn(1, 14, 12, seed=1)
    np.testing.assert_allclose(ssim(a, a), np.ones(4), rtol=1e-12)
    np.testing.assert_allclose(ssim(a, b), ssim(b, a), rtol=1e-12)
    assert (ssim(a, b) < 0.5).all()
    assert (ssim(1 - a, a) < 0).all()
    # Only luminance differs between flat images: (2·¼·½ + C1) / (¼² + ½² + C1), C1 = .01².
    flat, brighter = torch.full((1, 11, 11), 0.25), torch.full((1, 11, 11), 0.5)
    np.testing.assert_allclose(ssim(flat, brighter), (0.25 + 1e-4) / (0.3125 + 1e-4), rtol=1e-9)
    np.testing.assert_allclose(mse(flat, brighter), 1 / 16)
    np.testing.assert_allclose(mse(a, b), [np.square(one - b.numpy()).mean() for one in a.numpy()], rtol=1e-12)
    with pytest.raises(BadInput, match="11 pixels or more a side"):
        ssim(a[..., :10], b[..., :10])


def test_total_variation_is_that_of_neighbours() -> None:
    x = drawn(2, 2, 3, 4)
    slow = np.zeros(2)
    for n, c, i, j in np.ndindex(2, 2, 3, 4):
        slow[n] += abs(float(x[n, c, i, j] - x[n, c, i - 1, j])) if i else 0
        slow[n] += abs(float(x[n, c, i, j] - x[n, c, i, j - 1])) if j else 0
    np.testing.assert_allclose(total_variation(x), slow / 24, rtol=1e-12)


def test_a_linear_model_gives_away_the_mean_of_each_class() -> None:
    data = faces()
    model, means = linear_softmax(data), class_means(data)
    before = [parameter.clone() for parameter in model.parameters()]
    found = invert(model, [2, 0, 1], data.x.mean(0), SETTINGS, seed=SEED)
    assert found.images.shape == (3, 2, 1, HEIGHT, WIDTH)
    assert float(found.images.min()) >= 0
    assert float(found.images.max()) <= 1
    assert float(found.confidence.min()) > 0.9
    with torch.no_grad():
        p = model(found.images.flatten(0, 1)).softmax(1)
    np.testing.assert_allclose(p[range(6), [2, 2, 0, 0, 1, 1]], found.confidence.flatten(), rtol=1e-9)
    distance = mse(found.images[:, :, None], means)
    assert distance.argmin(2).tolist() == [[2, 2], [0, 0], [1, 1]]
    assert ssim(found.images[:, :, None], means).argmax(2).tolist() == [[2, 2], [0, 0], [1, 1]]
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_what_is_kept_costs_least_of_all_that_was_met() -> None:
    data = faces()
    model, mean = linear_softmax(data), data.x.mean(0)

    def cost(images: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return 1 - model(images).softmax(1)[:, 1] + 2 * total_variation(images)

    # Steps so long that the cost rises again and again.
    least = [
        cost(invert(model, [1], mean, InversionSettings(steps, 1.0, 2.0, starts=2), seed=SEED).images[0])
        for steps in (0, 1, 2, 5, 10, 20)
    ]
    assert all((later <= earlier).all() for earlier, later in pairwise(least))
    assert (least[-1] < least[0]).all()


def test_starts_are_the_mean_and_noisy_copies_of_it() -> None:
    data = faces()
    model, mean = linear_softmax(data), data.x.mean(0)
    state = torch.random.get_rng_state()
    found = invert(model, [0, 2], mean, InversionSettings(steps=0, starts=3, spread=0.05), seed=SEED).images
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0, 0], mean)
    noise = (found[0, 1:] - mean)[(found[0, 1:] > 0) & (found[0, 1:] < 1)]
    assert 0.04 < float(noise.std()) < 0.06
    other = invert(model, [0], mean, InversionSettings(steps=0, starts=3, spread=0.05), seed=SEED + 1).images
    assert torch.equal(other[0, 0], mean)
    assert not torch.equal(other[0, 1], found[0, 1])


def test_labels_and_starts_searched_side_by_side_do_not_meet() -> None:
    data = faces()
    model, mean = linear_softmax(data), data.x.mean(0)
    together = invert(model, [0, 1], mean, SETTINGS, seed=SEED).images
    for place, label in enumerate((0, 1)):
        alone = invert(model, [label], mean, InversionSettings(60, 0.05, starts=1), seed=SEED).images
        torch.testing.assert_close(alone[0, 0], together[place, 0], rtol=0, atol=1e-9)


def test_dropout_is_off_while_a_model_is_inverted() -> None:
    mean = faces().x.mean(0)
    model = make_model("mlp", {"hidden": [8], "dropout": 0.5}).build((1, HEIGHT, WIDTH), CLASSES, 0).double().train()
    found = [invert(model, [0], mean, SETTINGS, seed=SEED).images for _ in range(2)]
    assert torch.equal(*found)
    assert model.training


def test_faces_in_a_folder_are_inverted_and_compared(tmp_path: Path) -> None:
    data = faces()
    for point, label in enumerate(data.y.tolist()):
        folder = tmp_path / "att" / f"s{label + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = (data.x[point, 0] * 255).round().to(torch.uint8).numpy()
        Image.fromarray(pixels).save(folder / f"{point // CLASSES + 1}.pgm")
    loaded = load(f"folder:{tmp_path / 'att'}")
    assert loaded.classes == ("s1", "s2", "s3")
    assert loaded.shape == (1, HEIGHT, WIDTH)
    x, y = loaded.tensors().all()
    people = TensorSet(x.double(), y)
    found = invert(linear_softmax(people), [1], x.double().mean(0), SETTINGS, seed=SEED).images[0]
    own = people.x[y == 1]
    likeness = compare(found, own[0], own[1:].mean(0))
    np.testing.assert_allclose(likeness.mse_image, [float((one - own[0]).square().mean()) for one in found])
    np.testing.assert_allclose(likeness.ssim_class_mean, ssim(found, own[1:].mean(0)))
    np.testing.assert_allclose(likeness.ssim_image, ssim(found, own[0]))
    assert (likeness.mse_class_mean < likeness.mse_image).all()  # a linear model knows the class, not the image
    np.testing.assert_allclose(compare(own[:1], own[0], own[1]).ssim_image, 1)


def test_what_cannot_be_inverted_is_refused() -> None:
    data = faces()
    model, mean = linear_softmax(data), data.x.mean(0)
    with pytest.raises(BadInput, match=r"labels are \[3\]; allowed: one or more from 0 to 2"):
        invert(model, [3], mean, seed=0)
    with pytest.raises(BadInput, match=r"labels are \[\]"):
        invert(model, [], mean, seed=0)
    with pytest.raises(BadInput, match=r"mean is torch.float64 of shape \(14, 12\)"):
        invert(model, [0], mean[0], seed=0)
    with pytest.raises(BadInput, match=r"with values from 0\.5 to 1\.0"):
        invert(model, [0], mean, seed=0, value_range=(0.5, 1.0))
    with pytest.raises(BadInput, match=r"mean is torch\.uint8"):
        invert(model, [0], (mean * 255).to(torch.uint8), seed=0)
    for field, value in (("steps", -1), ("starts", 0), ("tv", -0.1), ("spread", float("nan")), ("learning_rate", 0.0)):
        with pytest.raises(BadInput, match=f"inversion.{field} is"):
            InversionSettings(**{field: value})
