"""Walks to the boundaries of several models at once, as on a GPU, are those to each of them, with as many labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from audits.apollo.evidence import boundary as boundary_file
from audits.models.stacked import stacked
from audits.queries.hop_skip_jump import ABSOLUTE, RANK, distances, distances_of_models
from audits.queries.start_points import starts_from_pool
from audits.queries.together import Together, together
from benchmarks.pretended import Counts, OnDevice, pretended
from tests.audits.test_on_cuda import scene_on

MODELS, POINTS, DIMENSIONS, CLASSES = 5, 9, 6, 4


@pytest.fixture
def counts() -> Iterator[Counts]:
    with pretended() as found:
        yield found


def network(seed: int, hidden: int = 8) -> nn.Module:
    """Return a network whose classes meet in the middle of the box."""
    torch.manual_seed(seed)
    first, second = nn.Linear(DIMENSIONS, hidden), nn.Linear(hidden, CLASSES)
    with torch.no_grad():
        first.weight.normal_()
        first.bias.copy_(-first.weight.sum(1) / 2)
        second.bias.zero_()
    norm = nn.BatchNorm1d(hidden)
    return nn.Sequential(first, norm, nn.Tanh(), second).double().eval().requires_grad_(False)


def networks() -> list[nn.Module]:
    return [network(seed) for seed in range(MODELS)]


def drawn(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(count, DIMENSIONS, generator=generator, dtype=torch.float64)
    return x, torch.randint(CLASSES, (count,), generator=generator)


def labels_of(model: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda points: model(points).argmax(1)


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(replace(RANK, directions=20, halvings=9, tries=4), id="short"),
        pytest.param(RANK, id="rank", marks=pytest.mark.long),
        pytest.param(ABSOLUTE, id="absolute", marks=pytest.mark.long),
    ],
)
def test_distances_of_models_at_once_are_those_of_each(schedule, counts: Counts) -> None:
    x, y = drawn(POINTS, 1)
    pool, pool_labels = drawn(60, 2)
    starts, ids = starts_from_pool(x, y, pool, pool_labels, 4), np.arange(POINTS) * 3
    models = networks()
    wanted = [distances(labels_of(one), x, y, ids, starts, schedule, 7, (0.0, 1.0)).distance for one in models]
    there = together([model.cuda() for model in models], (DIMENSIONS,), x.cuda())
    assert isinstance(there, Together) and there.count == MODELS
    counts.clear()
    found = distances_of_models(there, x.cuda(), y.cuda(), ids, starts.cuda(), schedule, 7, (0.0, 1.0))
    assert counts.syncs.total() == 2, "only whether the points are in their range is read back"
    torch.testing.assert_close(found.cpu(), torch.stack(wanted), rtol=1e-6, atol=1e-9, equal_nan=True)
    assert torch.stack(wanted).isfinite().double().mean() > 0.5
    assert there.asked == schedule.queries * POINTS


@pytest.mark.long
def test_boundary_evidence_walks_all_shadows_at_once(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    found, launches = [], []
    for at_once in (together, lambda models, shape, x: None):
        monkeypatch.setattr(boundary_file, "together", at_once)
        scene = scene_on("cuda")
        case = scene.case("boundary")
        counts.clear()
        found.append(boundary_file.Boundary().gather(case).arrays())
        launches.append(counts.launches.total())
    for name, values in found[1].items():
        np.testing.assert_allclose(found[0][name], values, rtol=1e-9, atol=1e-9, err_msg=name)
    assert launches[0] < launches[1] / 3


def other_forms() -> dict[str, Sequence[nn.Module]]:
    first, second, *_ = networks()
    return {
        "one": [first],
        "another width": [first, network(1, hidden=9)],
        "another dtype": [first, network(1).float()],
        "in train mode": [first, second.train()],
        "dropped by another share": [nn.Sequential(nn.Dropout(rate)).eval() for rate in (0.1, 0.2)],
        "reads values": [Reading().eval(), Reading().eval()],
    }


class Reading(nn.Module):
    """Its control flow depends on values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(DIMENSIONS, CLASSES).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.layer(x)
        return found if bool((found > 0).any()) else -found


@pytest.mark.parametrize("name", other_forms())
def test_models_that_are_no_stack_stay_apart(name: str, counts: Counts) -> None:
    models = [model.cuda() for model in other_forms()[name]]
    assert stacked(models, drawn(1, 0)[0].cuda()) is None


def test_nothing_is_stacked_on_a_cpu() -> None:
    assert stacked(networks(), drawn(1, 0)[0]) is None


def wide(seed: int) -> nn.Module:
    """Return a model whose answers take far more memory than its weights: 64 kB a point and layer."""
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
    return nn.Sequential(layers, nn.Linear(32, CLASSES)).double().eval().requires_grad_(False)


@pytest.mark.long
@pytest.mark.parametrize(("most", "first", "last"), [(2_500_000, 8, 8), (1_000_000, 4, 4), (600_000, 2, 1)])
def test_where_memory_is_scarce_fewer_points_then_fewer_models_are_asked_at_once(
    most: int, first: int, last: int
) -> None:
    x = torch.rand(6, 32 * 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    models, images = [wide(seed) for seed in range(8)], x.reshape(-1, 1, 32, 32)
    wanted = torch.stack([model(images).argmax(1) for model in models])
    with pretended(most=most):
        found = together([model.cuda() for model in models], (1, 32, 32), x.cuda())
        assert found is not None and found.models.at_once == first
        assert torch.equal(found.same(images.cuda()).cpu(), wanted)
        assert torch.equal(found(x.repeat(8, 1).cuda()).cpu(), wanted.flatten())
        assert found.models.at_once == last


def test_where_not_even_two_fit_models_are_asked_one_by_one() -> None:
    with pretended(most=200_000):
        assert together([wide(seed).cuda() for seed in range(8)], (1, 32, 32), torch.rand(1, 32 * 32).cuda()) is None


def test_models_that_no_longer_fit_are_asked_fewer_at_a_time() -> None:
    x = torch.rand(3, 1, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    models = [wide(seed) for seed in range(8)]
    wanted = torch.stack([model(x).argmax(1) for model in models])
    with pretended(most=8_000_000):
        found = together([model.cuda() for model in models], (1, 32, 32), x.flatten(1).cuda())
        assert found is not None and OnDevice.room is not None
        there = x.cuda()
        OnDevice.room.most = 500_000  # others hold the rest by now
        assert torch.equal(found.same(there).cpu(), wanted)
        assert found.models.at_once < 8
