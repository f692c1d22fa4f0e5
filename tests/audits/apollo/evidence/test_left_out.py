"""Evidence without groups of shadows: who is left out, of what, and that the rest stays."""

from __future__ import annotations

import numpy as np
import pytest

from audits.apollo.evidence import KINDS, Evidence
from audits.apollo.evidence.left_out import left_out
from audits.apollo.evidence.parts import Part, Posteriors, Walks


def walks(shadows: int, points: int = 3) -> Walks:
    """Return walks of two halves of ``shadows``; the labels of a shadow are its number, in binary."""
    number = np.arange(shadows)[:, None] >> np.arange(5) & 1
    pseudo = np.broadcast_to(number[None, :, None].astype(bool), (2, shadows, points, 5))
    sides = np.broadcast_to((np.arange(shadows) % 2 == 0)[None, :, None], (2, shadows, points))
    nothing = np.zeros((2, points, 2, 2))
    return Walks(pseudo, sides, ~sides, pseudo[:, 0], nothing, nothing, np.full(points, 9, np.int32))


def numbers(part: Walks) -> list[list[int]]:
    """Return which shadows of each half are left."""
    return [[int(row[0] @ (1 << np.arange(5))) for row in half] for half in part.pseudo.astype(int)]


def test_pairs_go_together_in_both_halves_and_walks_stay():
    whole = walks(8)
    found = left_out(Evidence({"apollo": whole}), ["apollo"])
    assert [numbers(each.walk("apollo"))[0] for each in found] == [
        [2, 3, 4, 5, 6, 7],
        [0, 1, 4, 5, 6, 7],
        [0, 1, 2, 3, 6, 7],
        [0, 1, 2, 3, 4, 5],
    ]
    for each in found:
        part = each.walk("apollo")
        assert numbers(part)[0] == numbers(part)[1] and part.inside.shape == part.outside.shape == (2, 6, 3)
        assert part.inside.sum(1).tolist() == part.outside.sum(1).tolist()
        assert part.radius is whole.radius and part.target is whole.target


def test_two_pairs_go_together_where_points_are_retained_and_one_shadow_where_they_are_offline():
    pairs = left_out(Evidence({"apollo": walks(8)}), ["apollo"], retained=True)
    assert [numbers(each.walk("apollo"))[0] for each in pairs] == [[4, 5, 6, 7], [0, 1, 2, 3]]
    singles = left_out(Evidence({"offline": walks(3)}), ["offline"])
    assert [numbers(each.walk("offline"))[0] for each in singles] == [[1, 2], [0, 2], [0, 1]]


@pytest.mark.parametrize(("shadows", "groups"), [(2, 0), (6, 3), (30, 8)])
def test_there_are_up_to_eight_groups_and_none_of_one_pair(shadows, groups):
    found = left_out(Evidence({"apollo": walks(shadows)}), ["apollo"])
    assert len(found) == groups
    if groups:
        left = [set(range(shadows)) - set(numbers(each.walk("apollo"))[0]) for each in found]
        assert sorted(one for each in left for one in each) == list(range(shadows))


def test_shadows_that_stand_in_one_row_lose_the_same_of_each_half():
    own = np.arange(8)[:, None, None] * np.ones((8, 3, 2), np.float32)
    sides = np.ones((8, 3), bool)
    part = Posteriors(own, own, sides, sides, own[0], np.zeros(3, np.int64), np.ones(3, np.int32))
    first, second = left_out(Evidence({"posteriors": part}), ["posteriors"])
    assert first.posterior().shadow[:, 0, 0].tolist() == [2, 3, 6, 7]
    assert second.posterior().original[:, 0, 0].tolist() == [0, 1, 4, 5]


def test_every_kind_of_evidence_says_where_its_shadows_are():
    for name in KINDS:
        part: type[Part] = KINDS[name].part
        assert part.shadows, name
        assert not any(axis == part.axes.get(field) for field, axis in part.shadows.items())
