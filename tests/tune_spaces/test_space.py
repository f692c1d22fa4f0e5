"""The spaces of sweeps: primitives as Ray Tune's of the same name, conditions, grids, names, and bounds refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from audits.errors import BadInput
from tune_spaces.space import Dimension, Space

PRIMITIVES = {
    "uniform": (0.2, 0.7),
    "loguniform": (0.01, 1.0),
    "quniform": (0.1, 0.9, 0.1),
    "qloguniform": (0.1, 0.9, 0.1),
    "randint": (2, 7),
    "lograndint": (2, 7),
    "qrandint": (3, 20, 5),
    "qlograndint": (3, 20, 5),
}


def dimension(form, *values, path="audit.search.epsilon", when=None):
    return Dimension(path, form, values, when or {})


@pytest.mark.parametrize(("form", "values"), PRIMITIVES.items())
def test_a_primitive_draws_what_ray_tunes_own_draws(form, values):
    from ray import tune

    mine = dimension(form, *values)
    generator, state = np.random.default_rng(0), np.random.RandomState(0)
    here = np.array([mine.draw(generator) for _ in range(4000)])
    there = np.array(getattr(tune, form)(*values).sample(size=4000, random_state=state))
    assert mine.low <= here.min() and here.max() <= mine.high
    assert mine.low == pytest.approx(there.min(), rel=0.02) and mine.high == pytest.approx(there.max(), rel=0.02)
    assert type(mine.draw(generator)) is (int if mine.whole else float)
    # the same distribution, by quantiles: 4000 draws know one to 0.025 of the whole (five standard errors)
    if mine.whole or mine.step:
        options = np.unique(np.round(there, 9))
        assert np.unique(np.round(here, 9)).tolist() == options.tolist()
        shares = [[np.isclose(drawn, each).mean() for each in options] for drawn in (here, there)]
        assert shares[0] == pytest.approx(shares[1], abs=0.05)
    else:
        quarters = np.quantile(there, (0.25, 0.5, 0.75))
        assert [(here < each).mean() for each in quarters] == pytest.approx([0.25, 0.5, 0.75], abs=0.05)


@pytest.mark.parametrize("values", [(2, 7, 1), (2, 7)])
def test_a_step_of_one_leaves_the_upper_end_out_as_in_ray_tune(values):
    from ray import tune

    there = tune.qrandint(*values).sample(size=400, random_state=np.random.RandomState(0))
    assert (
        (dimension("qrandint", *values).low, dimension("qrandint", *values).high) == (min(there), max(there)) == (2, 6)
    )


def test_drawn_numbers_have_four_digits_and_stay_between_the_bounds():
    narrow = dimension("uniform", 0.123449, 0.123461)
    generator = np.random.default_rng(0)
    assert {narrow.draw(generator) for _ in range(200)} == {0.123449, 0.123461}
    drawn = dimension("loguniform", 1e-5, 1.0).draw(generator)
    assert float(f"{drawn:.4g}") == drawn
    assert dimension("quniform", 0.0, 0.5, 0.1).high == 0.5
    assert {dimension("quniform", 0.1, 0.4, 0.1).draw(generator) for _ in range(50)} == {0.1, 0.2, 0.3, 0.4}


CONDITIONAL = Space(
    (
        dimension("choice", 1, 2, path="audit.search.steps", when={"audit.search.norm": ("l2",)}),
        dimension("choice", "l2", "linf", path="audit.search.norm"),
        dimension("constant", 3, path="seed"),
    )
)


def test_a_field_without_its_condition_is_left_out():
    steps, norm, seed = (each.path for each in CONDITIONAL.dimensions)
    assert CONDITIONAL.grid() == [
        {steps: 1, norm: "l2", seed: 3},
        {steps: 2, norm: "l2", seed: 3},
        {norm: "linf", seed: 3},
    ]
    assert [CONDITIONAL.name(each) for each in CONDITIONAL.grid()] == [
        "steps=1, norm=l2",
        "steps=2, norm=l2",
        "norm=linf",
    ]
    generator = np.random.default_rng(0)
    for _ in range(40):
        drawn = CONDITIONAL.sample(generator)
        assert (steps in drawn) == (drawn[norm] == "l2")


def test_fields_are_called_by_as_many_parts_as_tell_them_apart():
    paths = ("recipe.learning_rate", "unlearning.finetune.learning_rate", "model.settings.dropout")
    space = Space(tuple(dimension("grid", 0.00005, 2.5, path=path) for path in paths))
    assert space.name(dict.fromkeys(paths, 0.00005)) == (
        "recipe.learning_rate=5e-05, finetune.learning_rate=5e-05, dropout=5e-05"
    )


def test_fields_whose_names_begin_alike_are_not_inside_each_other():
    both = Space((dimension("grid", 1, 2, path="audit.search"), dimension("grid", 1, 2, path="audit.searches")))
    assert len(both.grid()) == 4


def test_values_that_are_not_the_same_have_other_names():
    space = Space((dimension("grid", 0.1234567, 0.1234568, {"a": [1, None]}, True),))
    names = [space.name(each) for each in space.grid()]
    assert names == ["epsilon=0.1234567", "epsilon=0.1234568", 'epsilon={"a": [1, null]}', "epsilon=true"]


def test_corners_are_the_outermost_values():
    space = Space((dimension("randint", 1, 10, path="a"), dimension("choice", "x", "y", path="b")))
    assert space.corners() == [{"a": a, "b": b} for a in (1, 9) for b in ("x", "y")]
    many = Space(tuple(dimension("uniform", 0, 1, path=f"p{number}", when={}) for number in range(8)))
    assert len(many.corners()) == 9
    assert all({corner[f"p{number}"] for corner in many.corners()} == {0, 1} for number in range(8))


def test_corners_of_a_large_space_meet_conditions_of_conditions():
    chain = (
        dimension("choice", 1, 2, 3, path="a"),
        dimension("choice", 1, 2, 3, path="b", when={"a": (2, 3)}),
        dimension("choice", "x", "y", path="c", when={"b": (3,)}),
        *(dimension("choice", 1, 2, 3, path=f"p{number}") for number in range(4)),
    )
    assert {corner["c"] for corner in Space(chain).corners() if "c" in corner} == {"x", "y"}


@pytest.mark.parametrize(("form", "values"), [*PRIMITIVES.items(), ("choice", (1, {"a": [2]}, None)), ("grid", (1, 2))])
def test_a_space_gives_what_it_draws_also_as_a_file_keeps_it(form, values):
    space, generator = Space((dimension(form, *values, path="a"),)), np.random.default_rng(0)
    for _ in range(50):
        assert space.gives(json.loads(json.dumps(space.sample(generator))))
    for other in (-1, 1000, "x", [1], "python:a:b"):
        assert not space.gives({"a": other})
    assert not space.gives({}) and not space.gives({**space.sample(generator), "b": 1})


def test_a_space_gives_no_field_whose_condition_is_not_met():
    steps, norm, seed = (each.path for each in CONDITIONAL.dimensions)
    assert CONDITIONAL.gives({norm: "linf", seed: 3}) and CONDITIONAL.gives({norm: "l2", seed: 3, steps: 1})
    assert not CONDITIONAL.gives({norm: "linf", seed: 3, steps: 1}) and not CONDITIONAL.gives({norm: "l2", seed: 3})


REFUSED = [
    (("loguniform", 1.0, 0.02), "lower bound 1 is not below upper bound 0.02; did you mean loguniform(0.02, 1)?"),
    (("loguniform", 0, 1), "lower bound 0 has no logarithm"),
    (("lograndint", 0, 4), "lower bound 0 has no logarithm"),
    (("quniform", 0.0, 0.5, 0.6), "q = 0.6 is larger than the range 0 to 0.5"),
    (("quniform", 0.0, 0.5, 0.2), "bound 0.5 is no multiple of q = 0.2"),
    (("qrandint", 0, 4, 0), "q is 0"),
    (("qrandint", 3, 8, 4), None),
    (("qrandint", 5, 9, 4), "8 is the only value"),
    (("randint", 3, 4), "3 is the only value"),
    (("randint", 1, 2.5), "2.5 is not a whole number"),
    (("uniform", 0), "uniform takes lower, upper; 1 given"),
    (("uniform", "a", 1), "a is not a number"),
    (("choice",), "choice has no options"),
    (("choice", 1, 1), "1 is given twice"),
    (("loguniforn", 1, 2), "'loguniforn' is no primitive (did you mean 'loguniform'?)"),
]


@pytest.mark.parametrize(("given", "line"), REFUSED)
def test_what_ray_tune_would_refuse_is_refused_in_a_line(given, line):
    if line is None:
        assert dimension(*given).corners() == (4, 8)
        return
    with pytest.raises(BadInput) as error:
        dimension(*given)
    assert line in str(error.value) and str(error.value).startswith("audit.search.epsilon: ")


@pytest.mark.parametrize(
    ("when", "line"),
    [
        ({"audit.search.nrom": ("l2",)}, "(did you mean 'audit.search.norm'?)"),
        ({"audit.search.norm": ("linff",)}, "is never linff (did you mean 'linf'?); it is l2, linf"),
        ({"audit.search.beta": (1.0,)}, "a condition is on a field with a list of values"),
    ],
)
def test_a_condition_that_can_never_be_met_is_refused(when, line):
    norm = dimension("choice", "l2", "linf", path="audit.search.norm")
    beta = dimension("uniform", 0.5, 2.0, path="audit.search.beta")
    with pytest.raises(BadInput, match="when: ") as error:
        Space((norm, beta, dimension("randint", 1, 10, when=when)))
    assert line in str(error.value)


def test_conditions_in_a_circle_and_a_grid_of_ranges_are_refused():
    with pytest.raises(BadInput, match="in a circle"):
        Space(
            (
                dimension("choice", 1, 2, path="a", when={"b": (1,)}),
                dimension("choice", 1, 2, path="b", when={"a": (1,)}),
            )
        )
    with pytest.raises(BadInput, match=r"uniform\(0, 1\) has no list of values"):
        Space((dimension("uniform", 0, 1),)).grid()
