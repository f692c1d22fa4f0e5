"""An unlearning that is lost behind any of its steps and resumed ends with the weights of an undisturbed one."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from audits.training.keeper import NEVER, Keeper
from audits.unlearning import UNLEARNERS, make_unlearner
from tests.audits.unlearning.cases import FORGET, RECIPE, RETAIN, SETTINGS, build, points, same_state, trained
from tests.cases.families import thinned
from tests.cases.lost import lost_and_resumed, steps_of

CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in SETTINGS if name != "identity"),
    ("random_label", {"draws": "epoch"}),
    ("salun", {"draws": "epoch", "batches": "apart", "labels": "any", "optimizer": "adam"}),
    ("gradient_ascent", {"schedule_per_batch": True}),
    ("scrub", {"decay_epochs": (1, 2), "smoothing": 0.1, "optimizer": "sgd"}),
]


VARIED = {name for name, settings in CASES if settings}
"""Methods whose usual settings take no step that the others do not."""


@pytest.mark.parametrize(
    ("name", "settings"),
    thinned(CASES, [each for each in CASES if each[1] or each[0] not in VARIED]),
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_an_unlearning_lost_behind_any_step_ends_as_an_undisturbed_one(name: str, settings: dict[str, Any]) -> None:
    model, method = trained(), make_unlearner(name, {**SETTINGS[name], **settings})

    def unlearn(keeper: Keeper) -> nn.Module:
        sets = points(FORGET, 1), points(RETAIN, 2)
        return method.unlearn(model, *sets, seed=4, recipe=RECIPE, build=build, keeper=keeper)

    whole, total = unlearn(NEVER), steps_of(unlearn)
    assert total > 8
    for step in (1, 8, total) if name == "scrub" else (3, total):
        found, after = lost_and_resumed(unlearn, step)
        assert same_state(found, whole)
        assert after == total - step


def test_every_method_that_takes_steps_is_among_the_cases() -> None:
    assert {name for name, _ in CASES} == set(UNLEARNERS) - {"identity"}
