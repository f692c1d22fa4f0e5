"""Every kind of evidence: what it asks of a target, how it is cut into shards, joined and stored."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from audits.apollo.evidence import KINDS, Case, Group, Part
from audits.errors import BadInput
from audits.queries.oracles import label_oracle
from tests.audits.apollo.evidence.scene import (
    BUDGET,
    CANDIDATES,
    LABEL_KINDS,
    SETTINGS,
    Scene,
    make_scene,
    shorten_searches,
)
from tests.cases.families import as_one
from tests.cases.synthetic_evidence import make_evidence


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene()


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_searches(monkeypatch)


@as_one("name", KINDS)
def test_a_kind_declares_what_it_reads(name: str) -> None:
    kind = KINDS[name]
    assert set(kind.reads) <= {"online", "offline"} and kind.reads
    assert set(kind.draws) <= {"online", "offline"} and (kind.traced or not kind.draws)
    assert set(kind.settings) <= {"search", "budget", "population"}
    assert set(kind.after) <= set(KINDS) - {name}
    assert set(kind.part.axes) == {field.name for field in fields(kind.part)}
    assert kind.traced == ("trace" in vars(kind))


@pytest.mark.parametrize("name", KINDS)
def test_gathering_twice_gives_the_same_whatever_the_global_generators(scene: Scene, name: str) -> None:
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        found.append(replace(scene).gather(name))  # which has drawn nothing yet
    first, second = (part.arrays() for part in found)
    assert type(found[0]) is KINDS[name].part
    for field, values in first.items():
        np.testing.assert_array_equal(values, second[field], err_msg=field)
        assert KINDS[name].part.axes[field] is None or values.shape[KINDS[name].part.axes[field]] == CANDIDATES


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_a_target_is_asked_as_often_as_the_kind_says_and_only_about_its_own_candidates(scene: Scene, name: str) -> None:
    cost = KINDS[name].queries(SETTINGS, BUDGET)
    asked = scene.label_oracles(cost)  # which answer no further query
    earlier = {before: scene.gather(before) for before in KINDS[name].after}
    found = KINDS[name]().gather(replace(scene.case(name), labels=asked, earlier=earlier))
    for owner, oracle in asked.items():
        own = scene.questions.owner == owner
        assert set(oracle.counter.queries_spent(scene.questions.ids[own]).tolist()) == {cost}
        assert set(oracle.counter.queries_spent(scene.questions.ids[~own]).tolist()) == {0}
    assert found.arrays()["queries"].tolist() == [cost] * CANDIDATES


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_a_budget_below_the_cost_is_refused(scene: Scene, name: str) -> None:
    cost = KINDS[name].queries(SETTINGS, BUDGET)
    case = scene.case(name)
    with pytest.raises(BadInput, match="budget"):
        KINDS[name]().gather(replace(case, labels=scene.label_oracles(cost - 1)))


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_shards_of_candidates_join_to_the_whole(scene: Scene, name: str) -> None:
    case = scene.case(name)
    whole = KINDS[name]().gather(case)
    parts = [KINDS[name]().gather(shard_of(scene, name, rows)) for rows in (slice(0, 6), slice(6, 16))]
    for field, values in type(whole).joined(parts).arrays().items():
        np.testing.assert_allclose(values, whole.arrays()[field], rtol=0, atol=1e-9, err_msg=field)


def shard_of(scene: Scene, name: str, rows: slice) -> Case:
    asked = scene.questions
    own = replace(asked, x=asked.x[rows], y=asked.y[rows], ids=asked.ids[rows], owner=asked.owner[rows])

    def cut(groups: tuple[Group, Group]) -> tuple[Group, Group]:
        first, second = (replace(one, inside=one.inside[:, rows], outside=one.outside[:, rows]) for one in groups)
        return first, second

    return replace(scene, questions=own, online=cut(scene.online), offline=cut(scene.offline)).case(name)


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_a_candidate_whose_target_is_absent_is_an_error_not_a_made_up_answer(scene: Scene, name: str) -> None:
    case = replace(scene.case(name), labels={0: label_oracle(scene.targets[0])})
    with pytest.raises(KeyError, match="1"):
        KINDS[name]().gather(case)


def cut(part: Part, rows: slice) -> Part:
    """Return a shard: the candidates ``rows`` of ``part``."""
    arrays = {}
    for field, values in part.arrays().items():
        axis = part.axes[field]
        arrays[field] = values if axis is None else values[(slice(None),) * axis + (rows,)]
    return part.of(arrays)


@as_one("kind", KINDS)
def test_shards_joined_in_order_are_the_whole(kind: str) -> None:
    whole = make_evidence(7, candidates=11, kinds=[kind])[0].parts[kind]
    shards = [cut(whole, rows) for rows in (slice(0, 4), slice(4, 5), slice(5, 11))]
    joined = KINDS[kind].part.joined(shards)
    for field, values in whole.arrays().items():
        np.testing.assert_array_equal(getattr(joined, field), values)
        assert getattr(joined, field).dtype == values.dtype


@as_one("kind", KINDS)
def test_arrays_of_evidence_are_read_back_as_they_were(kind: str) -> None:
    whole = make_evidence(8, candidates=5, kinds=[kind])[0].parts[kind]
    assert set(whole.axes) == set(whole.arrays())
    back = KINDS[kind].part.of(whole.arrays())
    assert type(back) is type(whole)
    for field, values in whole.arrays().items():
        assert getattr(back, field) is values
