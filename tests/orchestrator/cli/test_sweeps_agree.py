"""The sweep that ``orch sweep`` or ``orch tune`` refuses, other commands refuse in the same line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.families import family, firsts
from tests.cases.refusals import refusals, rows, without_work
from tests.orchestrator.apollo import test_selection as apollo_selection
from tests.orchestrator.cli import test_sweeps
from tests.orchestrator.tmia import test_selection as tmia_selection
from tests.tune_spaces import test_files, test_space

EPSILON = "audit.search.epsilon"
PRICED = "--images-per-second=100"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; no command in it gets to its work."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCH_STORE", str(tmp_path / "store"))
    without_work(monkeypatch)
    return tmp_path


def written(fields: Mapping[str, Any]) -> str:
    """Write a sweep file called ``some``, without the fields that are None; return its name."""
    kept = {name: value for name, value in fields.items() if value is not None}
    Path("some.yaml").write_text(yaml.safe_dump(kept, sort_keys=False))
    return "some.yaml"


def files() -> Iterator[list[tuple[Mapping[str, Any], str]]]:
    """Yield, table by table, what sweep files say that are refused, and what is said of them."""
    yield [({**test_sweeps.FILE, **fields}, said) for fields, said in test_sweeps.FILES]
    yield [*of_fields()]
    yield [
        ({"base": "apollo-smoke", "space": {EPSILON: {form: values}}, "samples": 2}, said)
        for (form, *values), said in test_space.REFUSED
        if said is not None
    ]
    yield [*of_conditions()]


def of_fields() -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield those whose fields are none, or of another type."""
    for fields, said in test_files.REFUSED:
        number = said.endswith(": 3 is not the name of a field")  # whoever reads the file says so before
        yield {"base": "apollo-smoke", **fields}, "key 3 is not text" if number else said


def of_conditions() -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield those of conditions."""
    for when, said in rows(test_space.test_a_condition_that_can_never_be_met_is_refused):
        space = {"audit.search.norm": {"choice": ["l2", "linf"]}, "audit.search.beta": {"uniform": [0.5, 2.0]}}
        conditions = {name: list(values) for name, values in when.items()}
        space[EPSILON] = {"randint": [1, 10], "when": conditions}
        yield {"base": "apollo-smoke", "space": space, "samples": 2}, said


@family("fields, said", chain(*files()), default=firsts(files()), ids=lambda value: str(value)[:70])
def test_commands_refuse_the_files_that_a_sweep_refuses(
    fields: Mapping[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(fields)
    (line,) = refusals(capsys, ["sweep", file, "--out=o"])
    assert said in line
    assert refusals(capsys, ["validate", file])[:1] == [line]
    assert refusals(capsys, ["cost", "--sweep", file, PRICED]) == [line]
    assert not Path("o").exists()


VARIED = [(words[1:], said) for words, said in test_sweeps.REFUSED if words[0] == "sweep" and "--vary" in words]


@family("words, said", VARIED, default=(0, 1), ids=lambda value: " ".join(value)[:60])
def test_the_price_of_what_cannot_be_varied_is_refused_like_it(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text(yaml.safe_dump(test_sweeps.FILE))
    (line,) = refusals(capsys, ["sweep", *words, "--out=o"])
    assert said in line
    cost = ["--sweep=a" if word == "a" else word for word in words]
    assert refusals(capsys, ["cost", *cost, PRICED]) == [line]


Choice = tuple[str, list[str], Mapping[str, Any], str]
"""Kind of audit, words of the command, settings of the sweep, what is said."""


def choices() -> Iterator[list[Choice]]:
    """Yield, kind by kind, choices that are refused."""
    attacks = "--set=audit.attacks=[apollo, apollo_offline, boundary_distance]"
    yield [
        ("apollo", [attacks, "--set=audit.queries=60", *by(metric)], settings, said)
        for settings, metric, said in rows(
            apollo_selection.test_what_cannot_be_chosen_by_or_among_is_refused_in_one_line
        )
    ]
    yield [*of_tmia()]


def of_tmia() -> Iterator[Choice]:
    """Yield those of TMIA, which also rehearses on a changed plan."""
    for changes, settings, metric, said in rows(
        tmia_selection.test_what_cannot_be_chosen_by_or_rehearsed_is_refused_in_one_line
    ):
        sets = [f"--set={name.replace('__', '.')}={value}" for name, value in changes.items()]
        yield "tmia", [*sets, *by(metric)], settings, said


def by(metric: str | None) -> list[str]:
    """Return the words that say by what a setting is chosen."""
    return [] if metric is None else [f"--metric={metric}"]


@family("kind, words, settings, said", chain(*choices()), default=firsts(choices()), ids=lambda value: str(value)[:40])
def test_the_price_of_a_choice_that_cannot_be_made_is_refused_like_it(
    kind: str, words: list[str], settings: Mapping[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written({"base": f"{kind}-smoke", "settings": settings})
    (line,) = refusals(capsys, ["tune", kind, file, *words, "--out=o"])
    assert said.split("(")[0].replace("\\", "") in line
    assert refusals(capsys, ["cost", "--tune", "--sweep", file, *words, PRICED]) == [line]
    assert not Path("o").exists()
