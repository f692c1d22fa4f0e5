"""Plan files are anybody's text: what is too much of it is refused before it is made, in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from audits.errors import BadInput
from orchestrator.engine.plan.base import validated
from orchestrator.engine.plan.errors import MOST_PROBLEMS, PlanProblems
from orchestrator.engine.plan.files import LONG_TEXT, MOST_BYTES, parse_yaml, read_plan_file, sort_of
from orchestrator.engine.plan.sections import Compute
from orchestrator.engine.plan.target import Target
from orchestrator.kinds import load_plan


def repeated(levels: int, entry: str) -> str:
    """Return a text in which each level holds the one before nine times; ``entry`` writes a level."""
    names = [", ".join([f"*l{level}"] * 9) for level in range(levels)]
    return "l0: &l0 {x: 1}\n" + "".join(f"l{n + 1}: &l{n + 1} {entry.format(many)}\n" for n, many in enumerate(names))


HOSTILE = {
    "aliases of aliases": (repeated(5, "[{}]"), "values, repeated by aliases"),
    "merges of merges": (repeated(5, "{{<<: [{}], y: 1}}"), "values, repeated by aliases"),
    "a value within itself": ("a: &a [*a]", "referring to itself"),
    "values within values": ("a: " + "[" * 41 + "]" * 41, "nested too deeply"),
    "a chain of aliases": ("a0: &a0 x\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}]\n" for n in range(50)), "nested"),
    "a number in base 60": ("seed: 1" + ":1" * 9000, "a number of 18001 characters"),
    "a long hexadecimal number": ("seed: 0x" + "f" * 9000, "a number of 9002 characters"),
    "a megabyte of brackets": ("[" * 1_900_000, "nested too deeply"),
    "a megabyte of dashes": ("- " * 900_000, "nested too deeply"),
    "a megabyte of question marks": ("? " * 900_000, "nested too deeply"),
    "a megabyte of small lists": ("".join(f"k{n}: [1,2,3,4]\n" for n in range(95_000)), "more than 100000 values"),
    "a key twice": ("{a: 1, b: {c: 1, c: 2}}", "'c' is given twice"),
    "a key twice in a long text": (f"# {'x' * LONG_TEXT}\na: 1\na: 2\n", "'a' is given twice"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_that_would_become_too_much_is_refused(name: str) -> None:
    text, said = HOSTILE[name]
    with pytest.raises(BadInput) as caught:
        parse_yaml(text, "plan.yaml")
    assert said in str(caught.value) and str(caught.value).startswith("plan.yaml")
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


def test_a_long_text_says_the_same_as_a_short_one() -> None:
    text = f"x: &x 5\nids: {list(range(9000))}\nrate: 2e-3\nmore: {{a: [1, *x], b: ~, c: 'd'}}\n"
    assert len(text) > LONG_TEXT
    assert parse_yaml(text, "long") == {
        "x": 5,
        "ids": list(range(9000)),
        "rate": 0.002,
        "more": {"a": [1, 5], "b": None, "c": "d"},
    }


@pytest.mark.parametrize("text", ["010", "-010", "00", "0_7", "10:50", "1:30:00", "-1:30", "1:30.5", "0:100"])
@pytest.mark.parametrize("length", [0, LONG_TEXT])
def test_numbers_in_base_8_and_60_stay_the_texts_that_they_are(text: str, length: int) -> None:
    found = parse_yaml(f"x: [{text}]\ny: {text}\nz: '{text}'\n#{'-' * length}", "p")
    assert found == {"x": [text], "y": text, "z": text}


def test_other_numbers_stay_numbers() -> None:
    text = "[0, -0, 7, 0.5, 00.5, 0x10, 0b11, 1_000, 2e-3, 0e1, 1.]"
    assert parse_yaml(text, "p") == [0, 0, 7, 0.5, 0.5, 16, 3, 1000, 0.002, 0.0, 1.0]


def test_a_range_of_members_needs_no_quotes_and_an_id_with_a_zero_in_front_is_refused() -> None:
    target = {"weights": "m.pt", "members": parse_yaml("10:50", "p")}
    assert Target.model_validate(target).members == "10:50"
    with pytest.raises(BadInput, match=r"ids.0: .010. is no point"):
        load_plan("apollo-smoke", values={"split.forget": parse_yaml("{ids: [010, 1]}", "p")})
    with pytest.raises(BadInput, match="seed"):
        load_plan("apollo-smoke", values={"seed": parse_yaml("010", "p")})


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_bytes(b"#" * (MOST_BYTES + 1))
    for endless in (tmp_path / "plan.yaml", Path("/dev/zero")):
        with pytest.raises(BadInput, match="more than 2 MiB"):
            read_plan_file(endless)


def test_files_that_a_plan_names_are_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(BadInput, match=r"ids_file .* is not a file"):
            load_plan("apollo-smoke", values={"split.forget": {"ids_file": place}})


@pytest.mark.parametrize("name", ["mia-smoke", "mia-epochs"])
@pytest.mark.parametrize("form", ["file", "folder", ""])
def test_a_name_stands_for_what_is_shipped_whatever_lies_in_the_working_folder(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if form:
        (Path(name).touch if form == "file" else Path(name).mkdir)()
    assert sort_of(name) == ("plan" if name == "mia-smoke" else "sweep")
    assert sort_of(f"./{name}") == sort_of(f"./{name}", "sweep") == form
    assert sort_of("apollo-defences") == "plan" and sort_of("apollo-defences", "sweep") == "sweep"
    assert sort_of("mia-smoke", "sweep") == "plan"
    assert sort_of(str(tmp_path / name)) == form


def test_a_pipe_is_a_file_and_what_cannot_be_found_out_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert sort_of(str(tmp_path / "pipe")) == "file"
    with pytest.raises(BadInput):
        sort_of("n" * 5000)


def test_problems_beyond_the_first_are_left_out() -> None:
    with pytest.raises(PlanProblems) as caught:
        validated(Compute, {f"key{number}": 1 for number in range(10 * MOST_PROBLEMS)})  # type: ignore[type-var]
    assert len(caught.value.problems) == MOST_PROBLEMS


def test_credentials_are_masked_where_values_come_in() -> None:
    assert parse_yaml("store: s3://key:secret@bucket", "plan") == {"store": "s3://***@bucket"}
    plan = load_plan("apollo-smoke", values={"compute.store": "s3://key:secret@bucket"})
    assert plan.compute.store == "s3://***@bucket"
    assert plan.changed({"compute.store": "s3://key:secret@other"}).compute.store == "s3://***@other"
