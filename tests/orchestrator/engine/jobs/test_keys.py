"""Keys of artefacts: whatever decides a result changes the key, nothing else does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.training.recipe import Recipe
from orchestrator.engine.jobs.keys import ABSENT, artefact_key, differences, digest
from orchestrator.kinds import load_plan
from tests.cases.runs import jobs_of

RECIPE = asdict(Recipe())
TRAIN: dict[str, Any] = {
    "code": "0011223344556677",
    "data": "fingerprint",
    "points": digest(np.arange(500)),
    "model": {"name": "mlp", "settings": {"hidden": [128, 128]}},
    "recipe": RECIPE,
    "privacy": {"noise": 1.1, "clip_norm": 1.0, "delta": 1e-5},
    "seed": 3,
}
UNLEARN: dict[str, Any] = {
    "model": artefact_key("train", TRAIN),
    "forget": digest(np.arange(50)),
    "method": {"method": "gradient_ascent", "learning_rate": 0.04, "epochs": 10, "clip_norm": 0.1},
    "seed": 4,
}


def leaves(document: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, value in document.items():
        found += leaves(value, (*path, name)) if isinstance(value, Mapping) else [(*path, name)]
    return found


def changed(document: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    name, *rest = path
    value = document[name]
    if rest:
        return {**document, name: changed(value, tuple(rest))}
    if isinstance(value, bool) or value is None:
        return {**document, name: not value}
    if isinstance(value, list):
        return {**document, name: [*value, 1]}
    return {**document, name: value + ("x" if isinstance(value, str) else 1)}


@pytest.mark.parametrize(
    ("stage", "document", "path"),
    [("train", TRAIN, path) for path in leaves(TRAIN)] + [("unlearn", UNLEARN, path) for path in leaves(UNLEARN)],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_every_setting_is_in_the_key(stage: str, document: dict[str, Any], path: tuple[str, ...]) -> None:
    other = changed(document, path)
    assert artefact_key(stage, other) != artefact_key(stage, document)
    assert [row[0] for row in differences(document, other)] == [".".join(path)]


def test_a_model_trained_with_other_epochs_has_another_key_and_so_has_what_is_made_of_it() -> None:
    longer = TRAIN | {"recipe": asdict(replace(Recipe(), epochs=61))}
    assert artefact_key("train", longer) != artefact_key("train", TRAIN)
    made_of_it = UNLEARN | {"model": artefact_key("train", longer)}
    assert artefact_key("unlearn", made_of_it) != artefact_key("unlearn", UNLEARN)


def test_a_private_recipe_is_not_taken_for_a_plain_one() -> None:
    plain = {name: value for name, value in TRAIN.items() if name != "privacy"}
    assert artefact_key("train", plain) != artefact_key("train", TRAIN)
    assert ("privacy", ABSENT, TRAIN["privacy"]) in differences(plain, TRAIN)


def test_two_stages_never_share_a_key() -> None:
    assert artefact_key("search", TRAIN) != artefact_key("score", TRAIN)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@settings(deadline=None)
@given(documents, documents)
def test_keys_are_equal_exactly_when_no_field_differs(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert (artefact_key("train", a) == artefact_key("train", b)) == (differences(a, b) == [])


@settings(deadline=None)
@given(documents)
def test_the_order_of_fields_and_the_types_of_numbers_do_not_change_a_key(document: dict[str, Any]) -> None:
    def rewritten(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: rewritten(value[name]) for name in reversed(value)}
        if isinstance(value, list):
            return tuple(rewritten(item) for item in value)
        return np.float64(value) if isinstance(value, int) and not isinstance(value, bool) else value

    assert artefact_key("train", rewritten(document)) == artefact_key("train", document)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), ValueError, r"document\.recipe\.rate is nan"),
        (b"bytes", TypeError, r"document\.recipe\.rate is a bytes"),
        (Path("x"), TypeError, "JSON"),
        ({1: 2}, TypeError, "names of fields are strings"),
    ],
)
def test_values_without_one_spelling_are_refused(value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        artefact_key("train", {"recipe": {"rate": value}})


def test_differences_name_the_field_and_both_values() -> None:
    a = {"recipe": {"epochs": 3, "layers": [1, {"width": 2}]}, "seed": 1, "points": [1, 2]}
    b = {"recipe": {"epochs": 4, "layers": [1, {"width": 5}]}, "private": True, "points": [1, 2, 3], "seed": 1}
    assert differences(a, b) == [
        ("points", [1, 2], [1, 2, 3]),
        ("private", ABSENT, True),
        ("recipe.epochs", 3, 4),
        ("recipe.layers[1].width", 2, 5),
    ]


def test_a_digest_depends_on_values_shape_and_dtype_only() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    others = [rows.astype(np.int64), rows.reshape(4, 3), rows + 1, rows.tobytes(), rows[:0], np.int32(0)]
    assert len({digest(array) for array in [rows, *others]}) == 7
    assert digest(np.asfortranarray(rows)) == digest(rows) == digest(rows.astype(">i4"))
    assert digest(np.repeat(rows, 2, axis=0)[::2]) == digest(rows)
    assert digest(b"one") == digest(memoryview(b"one")) != digest(b"two")
    with pytest.raises(TypeError, match="objects"):
        digest(np.array([object()]))


def test_a_private_defence_decides_no_job_but_its_own() -> None:
    recipe = {"learning_rate": 0.1, "epochs": 1, "batch_size": 20, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
    removal = [{"method": "remove", "ranking": name, "share": 0.2} for name in ("gnq_log", "random")]
    jobs: list[set[tuple[str, str, str]]] = []
    private = []
    for more in ([], [{"method": "dp_sgd", "recipe": recipe}]):
        listed = jobs_of(load_plan("gnq-smoke", values={"defences": [*removal, *more]}))
        jobs.append({(job.stage, job.label, job.key) for job in listed})
        private = [job for job in listed if job.label == "dp-noise-1" and job.stage == "defend"]
    assert {label for _, label, _ in jobs[1] - jobs[0]} == {"dp-noise-1"} and jobs[0] < jobs[1]
    assert all("opacus" in job.document["platform"] for job in private)
