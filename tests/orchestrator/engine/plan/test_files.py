"""Plan files are anybody's text: what is too much of it is refused before it is made, in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from audits.errors import BadInput
from orchestrator.engine.plan.base import validated
from orchestrator.engine.plan.errors import MOST_PROBLEMS, PlanProblems
from orchestrator.engine.plan.files import LONG_TEXT, MOST_BYTES, parse_yaml, read_plan_file
from orchestrator.engine.plan.sections import Compute
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


def test_problems_beyond_the_first_are_left_out() -> None:
    with pytest.raises(PlanProblems) as caught:
        validated(Compute, {f"key{number}": 1 for number in range(10 * MOST_PROBLEMS)})  # type: ignore[type-var]
    assert len(caught.value.problems) == MOST_PROBLEMS


def test_credentials_are_masked_where_values_come_in() -> None:
    assert parse_yaml("store: s3://key:secret@bucket", "plan") == {"store": "s3://***@bucket"}
    plan = load_plan("apollo-smoke", values={"compute.store": "s3://key:secret@bucket"})
    assert plan.compute.store == "s3://***@bucket"
    assert plan.changed({"compute.store": "s3://key:secret@other"}).compute.store == "s3://***@other"
