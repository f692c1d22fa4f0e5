"""Presets: who takes one, who does not, and which files of presets are refused."""

from __future__ import annotations

import pytest

from audits.errors import BadInput
from audits.unlearning import UNLEARNERS, make_unlearner
from orchestrator.apollo.presets import read_presets, shipped_presets
from orchestrator.kinds import load_plan, plan_from

ENTRY = "{data: digits, model: mlp, forget: 0.1, method: scrub, settings: {epochs: 3}, source: a sweep}"


def settings_of(method: str, *overrides: str) -> dict[str, object]:
    plan = load_plan(None, [f"unlearning=[{{method: {method}}}]", *overrides])
    return next(entry.settings for entry in plan.unlearning if entry.method == method)


@pytest.mark.parametrize("preset", shipped_presets(), ids=lambda preset: f"{preset.place}/{preset.method}")
def test_every_shipped_preset_has_settings_of_its_method(preset: object) -> None:
    assert preset.method in UNLEARNERS  # type: ignore[attr-defined]  # a Preset
    assert make_unlearner(preset.method, preset.settings)  # type: ignore[attr-defined]  # a Preset


def test_the_example_takes_presets_for_every_method_that_has_settings() -> None:
    plan = load_plan("examples/apollo-fashion-mnist.yaml")
    tuned = [entry for entry in plan.unlearning if entry.settings]
    assert len(tuned) == 3
    assert [note.split()[1] for note in plan.notes] == [entry.method for entry in tuned]
    assert all("takes the preset" in note for note in plan.notes)


def test_every_approximate_method_has_a_preset_for_the_default_and_for_the_example() -> None:
    wanted = {name for name in UNLEARNERS if name not in ("identity", "retrain")}
    for place in ("fashion14/mlp/0.1", "fashion-mnist/cnn/0.2"):
        assert {preset.method for preset in shipped_presets() if preset.place == place} == wanted


def test_an_entry_without_settings_takes_the_matching_preset_and_says_so() -> None:
    plan = load_plan(None, ["unlearning=[{method: identity}, {method: retrain}, {method: scrub, as: tuned}]"])
    assert plan.unlearning[2].label == "tuned"
    (preset,) = (entry for entry in shipped_presets() if (entry.place, entry.method) == ("fashion14/mlp/0.1", "scrub"))
    assert plan.unlearning[2].settings == preset.settings != UNLEARNERS["scrub"]().__dict__
    assert plan.notes == ("unlearning.2: scrub takes the preset fashion14/mlp/0.1",)
    assert not any("not tuned" in line for line in plan.warnings)
    assert plan_from(plan.resolved()).resolved() == plan.resolved()
    assert plan_from(plan.resolved()).notes == ()


def test_explicit_settings_win_as_a_whole() -> None:
    plan = load_plan(None, ["unlearning=[{method: scrub, epochs: 5}]"])
    scrub = next(entry for entry in plan.unlearning if entry.method == "scrub")
    assert scrub.settings["epochs"] == 5
    assert scrub.settings["learning_rate"] == UNLEARNERS["scrub"]().learning_rate  # type: ignore[attr-defined]
    assert not any("preset" in line for line in plan.notes)
    assert not any("not tuned" in line for line in plan.warnings)


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("split.forget=0.2", "fashion14/mlp/0.2"),
        ("model={name: cnn}", "fashion14/cnn/0.1"),
        ("data.name=mnist", "mnist/mlp/0.1"),
        ("split.forget={classes: [1, 2, 3]}", "fashion14/mlp/all training points of class 1, 2, 3"),
    ],
)
def test_without_a_matching_preset_the_defaults_are_taken_with_a_warning(override: str, place: str) -> None:
    plan = load_plan(None, ["unlearning=[{method: scrub}]", override])
    (warning,) = [line for line in plan.warnings if "not tuned" in line]
    assert warning.startswith("unlearning.scrub: scrub has its default settings")
    assert place in warning
    assert settings_of("scrub", override)["epochs"] == UNLEARNERS["scrub"]().epochs  # type: ignore[attr-defined]
    assert plan.changed({"seed": 1}).warnings == plan.warnings
    assert not any("not tuned" in line for line in plan.changed({"unlearning.scrub.epochs": 4}).warnings)


def test_the_defaults_written_out_are_settings_that_somebody_chose() -> None:
    written = ", ".join(f"{name}: {value}" for name, value in settings_of("scrub", "split.forget=0.2").items())
    plan = load_plan(None, [f"unlearning=[{{method: scrub, {written}}}]", "split.forget=0.2"])
    assert not any("not tuned" in line for line in plan.warnings)


def test_controls_need_no_preset() -> None:
    plan = load_plan(None, ["unlearning=[{method: identity}, {method: retrain}]", "split.forget=0.2"])
    assert plan.notes == ()
    assert not any("not tuned" in line for line in plan.warnings)


def test_a_file_of_presets_is_read() -> None:
    (preset,) = read_presets(f"[{ENTRY}]", "x.yaml")
    assert (preset.place, preset.settings) == ("digits/mlp/0.1", {"epochs": 3})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "a list"),
        (f"[{ENTRY}, {ENTRY}]", "scrub has two presets for digits/mlp/0.1"),
        (f"[{ENTRY.replace('0.1', '1.0')}]", "0.forget is 1.0"),
        (f"[{ENTRY.replace('source', 'sauce')}]", "0.source is missing"),
        (f"[{ENTRY.replace('source', 'sauce: x, source')}]", "sauce is not a field"),
        (f"[{ENTRY.replace('{epochs: 3}', '{}')}]", "0.settings"),
        (f"[{ENTRY.replace('mlp', '3')}]", "0.model is 3"),
        ("[", "not valid YAML"),
    ],
)
def test_files_that_hold_no_presets_are_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_presets(text, "x.yaml")
    assert says in str(caught.value)
    assert str(caught.value).startswith("x.yaml")
    assert "\n" not in str(caught.value)
