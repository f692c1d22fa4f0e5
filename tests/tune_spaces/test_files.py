"""Sweep files: what they say becomes settings, and what they cannot say is refused in a line."""

from __future__ import annotations

import pytest
import yaml

from audits.errors import BadInput
from orchestrator.engine.plan.files import parse_yaml
from tune_spaces.files import as_drawn, sweep_of
from tune_spaces.shipped import texts
from tune_spaces.space import Asha

EPSILON = "audit.search.epsilon"
DRAWN = {"base": "apollo-smoke", "space": {EPSILON: {"loguniform": [0.02, 1.0]}}, "samples": 5}


def of(**fields):
    """The sweep of a file around apollo-smoke; fields that are None are left out."""
    return sweep_of({key: value for key, value in {"base": "apollo-smoke", **fields}.items() if value is not None}, "x")


def test_a_list_is_a_grid_and_every_seed_a_setting_of_its_own():
    sweep = of(space={EPSILON: [0.1, 0.2], "audit.search.beta": 2.0}, seeds=[3, 4])
    assert sweep.settings({}) == {
        f"epsilon={width:g}, seed={seed}": {EPSILON: width, "audit.search.beta": 2.0, "seed": seed}
        for width in (0.1, 0.2)
        for seed in (3, 4)
    }
    assert list(sweep.settings({}))[:2] == ["epsilon=0.1, seed=3", "epsilon=0.1, seed=4"]
    assert not sweep.pooled and not sweep.search.adaptive


def test_draws_are_different_follow_the_seed_and_are_all_that_is_known_of_an_adaptive_search():
    first = sweep_of(DRAWN, "x").settings({})
    assert len(first) == 5 and first == sweep_of(DRAWN, "x").settings({})
    assert first != sweep_of({**DRAWN, "search_seed": 1}, "x").settings({})
    few = of(space={EPSILON: [0.1, 0.2, 0.3]}, samples=3).settings({})
    assert sorted(changes[EPSILON] for changes in few.values()) == [0.1, 0.2, 0.3]
    search = sweep_of({**DRAWN, "search": "optuna", "metric": "a.b.auc"}, "x")
    assert search.settings({}) == {} and search.search.adaptive
    assert as_drawn(search).settings({}) == first


def test_a_file_says_how_it_is_searched():
    sweep = sweep_of(
        {**DRAWN, "search": "optuna", "scheduler": {"asha": {"grace": 2}}, "metric": "a.b.auc", "seconds": 60}, "x"
    )
    search = sweep.search
    assert (search.algorithm, search.scheduler, search.mode) == ("optuna", Asha(2, 3), ("max",))
    assert (search.samples, search.seconds, search.metric) == (5, 60, ("a.b.auc",))


@pytest.mark.parametrize("name", texts())
def test_a_shipped_file_reads_the_same_whoever_reads_it(name):
    assert yaml.safe_load(texts()[name]) == parse_yaml(texts()[name], name)


GRID = {EPSILON: [0.1, 0.2]}
REFUSED = [
    (
        {"space": {EPSILON: "loguniform(0.02, 1)"}},
        f"{EPSILON}: loguniform(0.02, 1) is written so behind --vary; in a file write {{loguniform: [0.02, 1]}}",
    ),
    ({"sapce": GRID}, "sapce is not a field (did you mean 'space'?)"),
    ({"base": None, "space": GRID}, "base is missing"),
    ({}, "nothing varies"),
    ({"space": GRID, "settings": {"a": {}}}, "space and settings are two ways"),
    ({"settings": {"a": {}}, "samples": 3}, "samples is about a space"),
    ({"settings": {"a": 3}}, "settings.a is 3"),
    ({"space": GRID, "samples": 3, "search": "grid"}, "samples: 3 are drawn by search: random or optuna"),
    ({"space": GRID, "search": "random"}, "samples is missing"),
    ({"space": GRID, "search": "optunna", "samples": 3}, "search is optunna (did you mean 'optuna'?)"),
    ({"space": GRID, "samples": 3}, "samples: 3 different ones are wanted, but 150 draws gave 2"),
    ({"space": GRID, "samples": 0}, "samples is 0; allowed: a whole number, 1 to 10000"),
    ({"space": {EPSILON: {"loguniform": [0.1, 1]}}}, "loguniform(0.1, 1) has no list of values"),
    ({"space": {EPSILON: {"logunifrom": [0.1, 1]}}}, "(did you mean 'loguniform'?)"),
    ({"space": {EPSILON: {"choice": [1], "grid": [2]}}}, "give one primitive"),
    ({"space": {EPSILON: {"grid": [1, 2]}}, "samples": 2}, "search: random draws its settings and walks no grid"),
    ({"space": GRID, "search": "optuna", "samples": 3}, "metric is missing"),
    ({"space": GRID, "scheduler": "ahsa"}, "scheduler is ahsa (did you mean 'asha'?)"),
    ({"space": GRID, "scheduler": {"asha": {"gracious": 2}}}, "gracious is not a field"),
    ({"space": GRID, "scheduler": "asha", "metric": ["a", "b"]}, "stops trials by one metric"),
    ({"space": GRID, "seconds": 3}, "seconds is of search: optuna and scheduler: asha"),
    ({"space": GRID, "metric": "a", "mode": "mx"}, "mode is 'mx' (did you mean 'max'?)"),
    ({"space": GRID, "metric": "a", "mode": ["max", "min"]}, "mode: 2 for 1 metrics"),
    ({"space": {"seed": [1, 2]}, "seeds": [1]}, "seeds and space both set the plan's seed"),
    ({"space": GRID, "seeds": [1, 1]}, "give each seed once"),
    ({"space": GRID, "pooled": True}, f"differ in seed only, but these differ in {EPSILON}"),
    ({"space": {"a.b": ["1", 1]}}, "two settings are both called 'b=1'"),
    (
        {"space": {EPSILON: [0.2, 0.3], "audit.search": [{"epsilon": 0.1}]}},
        f"space: {EPSILON} is inside audit.search, so that one would replace the other; leave out one of them",
    ),
    ({"space": {"audit": [{"search": 1}], "audit.seed": [1]}}, "space: audit.seed is inside audit"),
    (
        {"space": {"audit": {"search": {"epsilon": [0.1, 0.2], "beta": [1]}}}},
        "space: fields are not nested here; write the whole path: audit.search.epsilon: [0.1, 0.2]",
    ),
    (
        {"space": {"audit": {"search": {"epsilon": {"loguniform": [0.1, 1]}}}}, "samples": 2},
        'write the whole path: audit.search.epsilon: {"loguniform": [0.1, 1]}',
    ),
    (
        {"space": {"audit.search": {"beta": [1, 2]}}},
        "audit.search: 'beta' is no primitive; for the field in it write audit.search.beta: [1, 2]; primitives: choice",
    ),
    (
        {"space": {"audit.search": {"beta": [1, 2], "steps": [1]}}},
        "for the field in it write audit.search.beta: [1, 2]",
    ),
    (
        {"settings": {"a": {}, "b": {EPSILON: 0.2, "audit.search": {"epsilon": 0.1}}}},
        f"settings.b: {EPSILON} is inside audit.search, so that one would replace the other; leave out one of them",
    ),
    ({"settings": {"a": {3: 1}}}, "settings.a: 3 is not the name of a field"),
    ({"settings": {"a": {"seed": 3}}, "seeds": [0, 1]}, "seeds and settings.a both set the plan's seed"),
    (
        {
            "space": {EPSILON: [0.1, 0.2], "audit.search.norm": {"choice": ["l2"], "when": {EPSILON: 0.1}}},
            "samples": 3,
            "scheduler": "asha",
            "metric": "a.b.auc",
        },
        "samples: 3 different ones are wanted, but 150 draws gave 2",
    ),
    ({"space": {3: [1, 2]}}, "space: 3 is not the name of a field"),
    ({"space": {}}, "space is empty: nothing varies; write fields of the plan and what they are, one a line"),
    ({"space": None, "settings": {}}, "settings has no setting"),
    ({"space": {f"a{number}": list(range(10)) for number in range(9)}}, "a grid of 1000000000 settings"),
]


def test_seeds_alone_may_vary():
    assert list(of(space={}, seeds=[1, 2]).settings({})) == ["base, seed=1", "base, seed=2"]


@pytest.mark.parametrize(("fields", "line"), REFUSED)
def test_what_a_file_cannot_say_is_refused_in_a_line(fields, line):
    with pytest.raises(BadInput) as error:
        of(**fields)
    assert line in str(error.value) and "\n" not in str(error.value)
