"""The design beside a given model: who saw a candidate, and where sizes do not fit."""

import dataclasses

import numpy as np
import pytest

from audits.errors import BadInput
from audits.tmia.design import MembershipSplit
from audits.tmia.given_design import make_given_membership
from tests.cases.families import as_one

SPLIT = MembershipSplit(
    targets=40, reference_models=5, null_models=3, candidates=20, train_size=30, attacker_points=300, filler=100
)
MEMBERS, OTHERS = np.arange(0, 60), np.arange(100, 600)


def test_nobody_but_the_given_model_and_controls_saw_a_candidate():
    found = make_given_membership(MEMBERS, OTHERS, SPLIT, 4, seed=0)
    given, *controls = found.membership
    assert sorted(found.candidates[given]) == sorted(np.intersect1d(found.candidates, MEMBERS))
    assert given.sum() == 10 and len(controls) == len(found.target) == 4
    assert not np.isin(np.concatenate([found.reference, found.null]), found.candidates).any()
    assert not np.isin(np.concatenate([found.reference, found.null]), MEMBERS).any()
    for own, trained in zip(controls, found.target, strict=True):
        assert sorted(np.intersect1d(trained, found.candidates)) == sorted(found.candidates[own])
        assert np.isin(trained[~np.isin(trained, found.candidates)], MEMBERS).all()
        assert len(set(trained)) == len(trained) == 30 and own.sum() == 10
    np.testing.assert_array_equal(controls[0], ~controls[1])
    parts = (found.candidates, found.attacker_points, found.filler, found.rest)
    assert sum(map(len, parts)) == len(set(np.concatenate(parts))) == 10 + len(OTHERS)


def test_controls_draw_filler_where_the_model_has_too_few_members():
    found = make_given_membership(MEMBERS[:25], OTHERS, SPLIT, 2, seed=0)
    for trained in found.target:
        assert np.isin(trained[~np.isin(trained, found.candidates)], found.filler).all()


def test_members_and_others_stand_in_random_order():
    """Selector ``none`` takes the first candidates: were members first, it would take members alone."""
    given = make_given_membership(MEMBERS, OTHERS, SPLIT, 0, seed=0).membership[0]
    assert 0 < given[:10].sum() < 10


def test_a_training_set_of_another_size_is_warned_of():
    found = make_given_membership(MEMBERS, OTHERS, SPLIT, 2, seed=0)
    assert "split.train_size is 30, but the target was trained on 60 points" in found.warnings[0]
    alike = make_given_membership(MEMBERS[:32], OTHERS, SPLIT, 2, seed=0)
    assert not any("the target was trained on" in line for line in alike.warnings)
    assert any("target.controls is 0" in line for line in make_given_membership(MEMBERS, OTHERS, SPLIT, 0, 0).warnings)


@as_one(
    "changes, members, others, message",
    [
        ({}, 60, 0, "leaves no known non-members"),
        (
            {"candidates": 122, "train_size": 70},
            60,
            500,
            "target.members has 60 points .*; allowed: up to 120",
        ),
        ({"candidates": 21}, 60, 500, "allowed: even"),
        ({"attacker_points": 495}, 60, 500, "more than the 500 known non-members"),
        ({"attacker_points": 20}, 60, 500, r"allowed: split.train_size \(30\)"),
        ({"filler": None, "attacker_points": 470}, 60, 500, "split.filler is 20, but a null model draws 30"),
        ({"filler": 200}, 60, 500, "split.filler is 200; allowed: up to 190"),
        ({"filler": 5, "null_models": 0}, 15, 500, "a control draws 20 of it"),
        ({"train_size": 9}, 60, 500, "less than half of the 20 candidates"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_in_one_line(changes, members, others, message):
    with pytest.raises(BadInput, match=message):
        make_given_membership(
            np.arange(members), np.arange(1000, 1000 + others), dataclasses.replace(SPLIT, **changes), 2, seed=0
        )
