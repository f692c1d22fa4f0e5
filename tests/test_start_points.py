"""Start points of the class of x: those of which contrast models are sure, so that no walk lacks a beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.membership.hop_skip_jump import ABSOLUTE, PLAIN, RANK, Schedule, distances
from audits.membership.start_points import starts_from_pool
from orchestrator.membership.stages import ANSWERS, Sights, pool_order, stored, tensors
from orchestrator.plan import load_plan
from orchestrator.schedule import open_scheduler
from orchestrator.stages import Workshop
from orchestrator.store import Store, unpack_arrays

SEED = 3


def slow_home(x: torch.Tensor, label: int, pool: torch.Tensor, known: torch.Tensor, share: Any) -> list[int]:
    """Return the places of the pool's points of class ``label``, largest share first, of equal ones the nearest."""
    of = [i for i in range(len(pool)) if int(known[i]) == label and not torch.equal(pool[i], x)]
    return sorted(of, key=lambda i: (-share[i], float((pool[i].double() - x.double()).norm()), i))


def test_of_its_class_the_nearest_of_those_that_models_agree_on_are_taken() -> None:
    generator = torch.Generator().manual_seed(0)
    x, pool = (torch.rand(count, 6, generator=generator) for count in (7, 60))
    x[0] = pool[4]
    y, known = torch.arange(7) % 3, torch.arange(60) % 3
    share = torch.randint(0, 4, (60,), generator=generator).double().numpy() / 3
    plain = starts_from_pool(x, y, pool, known, 8, own=3)
    found = starts_from_pool(x, y, pool, known, 8, own=3, agreement=share)
    assert torch.equal(found[:, :5], plain[:, :5]), "starts of other classes stay"
    for k in range(7):
        expected = slow_home(x[k], int(y[k]), pool, known, share)[:3]
        assert torch.equal(found[k, 5:], pool[torch.tensor(expected)])
    assert not torch.equal(found, plain)
    alone = [starts_from_pool(x[k : k + 1], y[k : k + 1], pool, known, 8, own=3, agreement=share) for k in range(7)]
    assert torch.equal(torch.cat(alone), found), "a point's starts are its own, whatever the others"


def test_where_models_agree_on_nothing_the_largest_share_is_taken() -> None:
    pool, known = torch.tensor([[1.0], [2.0], [3.0], [9.0]]), torch.tensor([0, 0, 0, 1])
    x, y = torch.tensor([[0.0]]), torch.tensor([0])
    found = starts_from_pool(x, y, pool, known, 4, agreement=np.array([0.1, 0.3, 0.2, 1.0]))
    assert found.flatten().tolist() == [9, 2, 3, 1]
    with pytest.raises(BadInput, match=r"agreement has shape \(3,\); give one share for each of the 4 pool points"):
        starts_from_pool(x, y, pool, known, 4, agreement=np.ones(3))


class Island:
    """Classes 0 and 1 left and right of 0; points of class 1 lie on the left as well, where every model errs."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(1)
        right = torch.rand(40, 5, generator=generator, dtype=torch.float64) + 1
        left = -torch.rand(60, 5, generator=generator, dtype=torch.float64) - 1
        self.pool = torch.cat([right, left])
        self.known = torch.tensor([1] * 40 + [1] * 30 + [0] * 30)
        self.x = left[:6] - 0.01
        self.y = torch.ones(6, dtype=torch.int64)
        self.asked = 0

    def label(self, points: torch.Tensor, tilt: float = 0.0) -> torch.Tensor:
        self.asked += len(points)
        return (points.sum(1) + tilt > 0).long()

    def starts(self, schedule: Schedule, share: Any = None) -> torch.Tensor:
        return starts_from_pool(self.x, self.y, self.pool, self.known, schedule.starts, agreement=share)


@pytest.mark.parametrize(("schedule", "queries"), [(RANK, 316), (PLAIN, 3734), (ABSOLUTE, 3899)])
def test_a_point_that_models_get_wrong_has_a_distance_at_the_same_cost(schedule: Schedule, queries: int) -> None:
    world = Island()
    ids = np.arange(6)
    contrast = torch.stack([world.label(world.pool, tilt) == world.known for tilt in (-0.2, 0.0, 0.2)])
    given = (world.x, world.y, ids)
    for share, failed in ((None, True), (contrast.double().mean(0).numpy(), False)):
        starts = world.starts(schedule, share)
        world.asked = 0
        found = distances(world.label, *given, starts, schedule, SEED, None)
        assert found.failed.tolist() == [failed] * 6
        assert world.asked == 6 * queries
    true = world.x.sum(1).abs() / 5**0.5
    assert (found.distance < 0).all() and (found.distance.abs() >= true - 1e-9).all()
    assert (found.distance.abs() <= 1.5 * true).all()


# ------------------------------------------------------------------------------------------------ in an audit


def workshop(store: Path) -> Workshop:
    """Return the workshop of a small plan of attack I."""
    values = {
        "compute.store": str(store),
        "compute.chunk": 16,
        "variants": {},
        "audit.pool": 16,
        "audit.attacks": ["tmia_distance"],
        "audit.selectors": ["none", "contrast_loss"],
        "split.targets": 2,
        "split.fresh": 0,
        "split.train_size": 100,
        "split.pool": 1000,
    }
    scheduler: Any = open_scheduler(load_plan("tmia-smoke", values=values))
    return Workshop(scheduler, Store(str(store)))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Return a workshop that has asked the targets about the first candidates."""
    made = workshop(tmp_path_factory.mktemp("starts"))
    layout: Any = made.scheduler
    models = [*layout.asked("contrast"), *layout.asked("target")]
    posteriors = [layout.ask_job("posteriors", "contrast", unit, 0) for unit in range(len(layout.units("contrast")))]
    for job in (*map(layout.fit_job, models), *posteriors, layout.select_job(), distances_job(layout)):
        made.perform(job)
    return made


def distances_job(layout: Any) -> Any:
    return layout.ask_job("distances", "target", 0, 0)


def test_what_models_see_is_counted_over_all_contrast_models(shop: Workshop) -> None:
    layout: Any = shop.scheduler
    x, y = tensors(shop, "own", layout.samples).all()
    right = np.zeros(len(y))
    for model in layout.asked("contrast"):
        right += (stored(shop, model)(x).argmax(1) == y).numpy()
    rows = np.array([3, 0])
    sights = Sights.of(shop, "candidates", rows)
    assert sights.known.tolist() == y.tolist() and sights.share.tolist() == (right / 12).tolist()
    assert 0 < sights.share.mean() < 1
    assert sights.classes.tolist() == tensors(shop, "own", layout.design.candidates[rows]).all()[1].tolist()


def test_where_own_labels_count_classes_are_those_that_most_contrast_models_see(shop: Workshop) -> None:
    mine: Any = shop.scheduler
    plan = mine.plan.changed({"audit.star": "own"})
    layout: Any = open_scheduler(plan)
    own = Workshop(layout, shop.store)
    for job in (*layout.posterior_jobs, layout.select_job()):
        own.perform(job)
    rows = np.arange(8)
    sights = Sights.of(own, "candidates", rows)
    for ids, found in ((layout.samples, sights.known), (layout.design.candidates[rows], sights.classes)):
        x, _ = tensors(own, "own", ids).all()
        said = torch.stack([stored(own, model)(x).argmax(1) for model in layout.asked("contrast")])
        assert found.tolist() == [int(np.bincount(one, minlength=10).argmax()) for one in said.T.numpy()]
    assert sights.known.tolist() != tensors(own, "own", layout.samples).all()[1].tolist()
    assert 1 / 10 <= sights.share.min() < sights.share.max() <= 1


def test_the_candidates_are_asked_from_the_starts_that_contrast_models_agree_on(shop: Workshop) -> None:
    layout: Any = shop.scheduler
    rows = pool_order(shop)[:16]
    ids = layout.design.candidates[rows]
    (x, y), (pool, known) = (tensors(shop, "own", rows).all() for rows in (ids, layout.samples))
    model = stored(shop, layout.asked("target")[0])
    box = layout.data.value_range

    def label(points: torch.Tensor) -> torch.Tensor:
        return model(points.reshape(-1, *layout.data.shape)).argmax(1)

    def searched(share: Any) -> Any:
        starts = starts_from_pool(x.flatten(1), y, pool.flatten(1), known, RANK.starts, agreement=share)
        return distances(label, x.flatten(1), y, ids, starts, RANK, shop.seed("hop_skip_jump"), box).distance.numpy()

    kept = unpack_arrays(shop.store.get("ask", distances_job(layout).key).read(ANSWERS))
    share = Sights.of(shop, "candidates", rows).share
    assert np.allclose(kept["distance"][0], searched(share), rtol=0, atol=1e-5, equal_nan=True)
    assert not np.allclose(kept["distance"][0], searched(None), rtol=0, atol=1e-5, equal_nan=True)
    assert (kept["queries"] == 316).all()
