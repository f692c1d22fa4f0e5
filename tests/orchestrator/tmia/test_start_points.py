"""Start points of the class of x: those of which reference models are sure, so that no walk lacks a beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.queries.hop_skip_jump import ABSOLUTE, PLAIN, RANK, Schedule, distances
from audits.queries.start_points import starts_from_pool
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.store import Store
from orchestrator.kinds import load_plan, open_design
from orchestrator.tmia.kind import KIND
from orchestrator.tmia.stages.context import Context
from orchestrator.tmia.stages.querying import ANSWERS, Sights, pool_order, stored, tensors

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


@pytest.mark.parametrize(
    ("schedule", "queries"),
    [
        (RANK, 316),
        pytest.param(PLAIN, 3734, marks=pytest.mark.long),
        pytest.param(ABSOLUTE, 3899, marks=pytest.mark.long),
    ],
)
def test_a_point_that_models_get_wrong_has_a_distance_at_the_same_cost(schedule: Schedule, queries: int) -> None:
    world = Island()
    ids = np.arange(6)
    reference = torch.stack([world.label(world.pool, tilt) == world.known for tilt in (-0.2, 0.0, 0.2)])
    given = (world.x, world.y, ids)
    for share, failed in ((None, True), (reference.double().mean(0).numpy(), False)):
        starts = world.starts(schedule, share)
        world.asked = 0
        found = distances(world.label, *given, starts, schedule, SEED, None)
        assert found.failed.tolist() == [failed] * 6
        assert world.asked == 6 * queries
    true = world.x.sum(1).abs() / 5**0.5
    assert (found.distance < 0).all() and (found.distance.abs() >= true - 1e-9).all()
    assert (found.distance.abs() <= 1.5 * true).all()


# ------------------------------------------------------------------------------------------------ in an audit


def small_context(store: Path) -> Context:
    """Return the context of a small plan of attack I."""
    values = {
        "compute.store": str(store),
        "compute.chunk": 16,
        "variants": {},
        "audit.asked": 16,
        "audit.attacks": ["tmia_distance"],
        "audit.selectors": ["none", "reference_loss"],
        "split.targets": 2,
        "split.null_models": 0,
        "split.overfitted_models": 0,
        "split.train_size": 100,
        "split.attacker_points": 1000,
    }
    design: Any = open_design(load_plan("tmia-smoke", values=values))
    return WorkerContext(KIND, design, Store(str(store)))


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """Return a context that has asked the targets about the first candidates."""
    made = small_context(tmp_path_factory.mktemp("starts"))
    design: Any = made.design
    models = [*design.models_of("reference"), *design.models_of("target")]
    posteriors = [
        design.query_job("posteriors", "reference", unit, 0) for unit in range(len(design.units("reference")))
    ]
    for job in (*map(design.train_job, models), *posteriors, design.select_job(), distances_job(design)):
        made.perform(job)
    return made


def distances_job(design: Any) -> Any:
    return design.query_job("distances", "target", 0, 0)


def test_what_models_see_is_counted_over_all_reference_models(context: Context) -> None:
    design: Any = context.design
    x, y = tensors(context, "own", design.samples).all()
    right = np.zeros(len(y))
    for model in design.models_of("reference"):
        right += (stored(context, model)(x).argmax(1) == y).numpy()
    rows = np.array([3, 0])
    sights = Sights.of(context, "candidates", rows)
    assert sights.known.tolist() == y.tolist() and sights.share.tolist() == (right / 12).tolist()
    assert 0 < sights.share.mean() < 1
    assert sights.classes.tolist() == tensors(context, "own", design.sets.candidates[rows]).all()[1].tolist()


def test_where_own_labels_count_classes_are_those_that_most_reference_models_see(context: Context) -> None:
    mine: Any = context.design
    plan = mine.plan.changed({"audit.star": "own"})
    design: Any = open_design(plan)
    own = WorkerContext(KIND, design, context.store)
    for job in (*design.posterior_jobs, design.select_job()):
        own.perform(job)
    rows = np.arange(8)
    sights = Sights.of(own, "candidates", rows)
    for ids, found in ((design.samples, sights.known), (design.sets.candidates[rows], sights.classes)):
        x, _ = tensors(own, "own", ids).all()
        said = torch.stack([stored(own, model)(x).argmax(1) for model in design.models_of("reference")])
        assert found.tolist() == [int(np.bincount(one, minlength=10).argmax()) for one in said.T.numpy()]
    assert sights.known.tolist() != tensors(own, "own", design.samples).all()[1].tolist()
    assert 1 / 10 <= sights.share.min() < sights.share.max() <= 1


def test_the_candidates_are_asked_from_the_starts_that_reference_models_agree_on(context: Context) -> None:
    design: Any = context.design
    rows = pool_order(context)[:16]
    ids = design.sets.candidates[rows]
    (x, y), (pool, known) = (tensors(context, "own", rows).all() for rows in (ids, design.samples))
    model = stored(context, design.models_of("target")[0])
    box = design.data.value_range

    def label(points: torch.Tensor) -> torch.Tensor:
        return model(points.reshape(-1, *design.data.shape)).argmax(1)

    def searched(share: Any) -> Any:
        starts = starts_from_pool(x.flatten(1), y, pool.flatten(1), known, RANK.starts, agreement=share)
        return distances(label, x.flatten(1), y, ids, starts, RANK, context.seed("hop_skip_jump"), box).distance.numpy()

    kept = unpack_arrays(context.store.get("query", distances_job(design).key).read(ANSWERS))
    share = Sights.of(context, "candidates", rows).share
    assert np.allclose(kept["distance"][0], searched(share), rtol=0, atol=1e-5, equal_nan=True)
    assert not np.allclose(kept["distance"][0], searched(None), rtol=0, atol=1e-5, equal_nan=True)
    assert (kept["queries"] == 316).all()
