"""What a person sees in a terminal: tables within 80 columns, colours that can be switched off, quiet and JSON runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from orchestrator.cli.main import main
from tests.cases.runs import draw_only
from tests.cases.smallest_plans import smallest_plan
from tests.cases.terminals import COLOURS, ORCH, Screen, Shown, opened, shown_here
from tests.cases.undrawn import UNDRAWN

KINDS = {"few": "mia", "apollo": "apollo", "tmia": "tmia", "gnq": "gnq", "mia": "mia", "gnq, given": "gnq"}

GATE = "loss.auc=0.99"
FEW = {"audit.attacks": ["loss"], "audit.judge": "loss"}
"""The run of few attacks that most tests read; it draws no figures, those of all kinds do."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("terminal")


def words(name: str, place: Path, *more: str) -> list[str]:
    """Return the words that audit the smallest plan ``name``; "few": that of kind mia, with few attacks."""
    plan = smallest_plan("mia", place / "store", **FEW) if name == "few" else smallest_plan(name, place / "store")
    file = place / f"{name}.yaml"
    file.write_text(yaml.safe_dump(plan.resolved()))
    return ["audit", KINDS[name], str(file), "--out", str(place / name), *more]


def shown(name: str, place: Path, *more: str) -> Screen:
    """Return the screen of a finished audit in a process of its own."""
    screen = opened([*(UNDRAWN if name == "few" else ORCH), *words(name, place, *more)], place)
    assert screen.end() == 0, screen.text
    return screen


@pytest.fixture(scope="module")
def whole(place: Path) -> Shown:
    """Return the screen of a finished audit of kind ``mia`` with a gate, of this process."""
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        screen = shown_here(words("few", place, "--fail-above", GATE))
    assert screen.code in (0, 1), screen.text
    return screen


def fits(screen: Screen | Shown) -> bool:
    """Say whether a screen of 80 columns holds tables that no line of which is longer or cut."""
    lines = screen.text.split("\n")
    told = [line for line in lines if not line.startswith(("tracking: ", "models: "))]  # commands, to be copied whole
    wide = [line for line in told if len(line.rstrip()) > 80 and " " in line.strip()]  # else a path
    assert not wide
    assert "─" in screen.text and "report: " in screen.text
    return not [line for line in lines if line.startswith(" ") and "…" in line]


def test_everything_that_a_run_prints_fits_80_columns(whole: Shown) -> None:
    assert fits(whole)


def test_the_command_that_opens_the_tracked_run_is_in_one_line(whole: Shown) -> None:
    (line,) = [line for line in whole.text.split("\n") if line.startswith("tracking: ")]
    command = r"tracking: mlflow ui --backend-store-uri \S+, then http://\S+"
    assert len(line) > 80 and re.fullmatch(command, line.rstrip())


def test_a_report_is_printed_as_its_run_was(whole: Shown, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_only(monkeypatch)
    report = shown_here(["report", str(place / "few")])
    assert report.code == 0, report.text
    first, _, rest = report.text.partition("\n")
    assert first.startswith("wrote ") and rest.strip()
    assert all(len(line.rstrip()) <= 80 for line in rest.split("\n"))
    assert rest.strip() in whole.text


def test_colours_are_off_where_that_is_asked_for(whole: Shown, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_only(monkeypatch)
    again = shown_here(words("few", place, "--no-color"))
    assert again.code == 0 and "─" in again.text
    assert COLOURS.search(whole.raw) and not COLOURS.search(again.raw)


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_so_it_does_for_all_kinds(name: str, place: Path) -> None:
    assert fits(shown(name, place))


@pytest.mark.long
def test_colours_of_a_process_of_its_own_are_off_where_that_is_asked_for(place: Path) -> None:
    """In short: the test above, in this process."""
    assert COLOURS.search(shown("few", place).raw)
    assert not COLOURS.search(shown("few", place, "--no-color").raw)


def here(place: Path, *more: str) -> int:
    """Run the command of ``whole`` again."""
    return main(words("few", place, *more))


def test_a_quiet_run_prints_how_it_ended_and_nothing_else(
    whole: Shown, place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    draw_only(monkeypatch)
    code = here(place, "--quiet", "--fail-above", GATE)
    told = "".join(capfd.readouterr())
    assert "summing up" in whole.text and "─" in whole.text
    assert "summing up" not in told and "─" not in told
    assert "report: " in told
    assert f"\ngate {GATE}: {'passed' if code == 0 else 'inconclusive'}: " in told
    assert here(place, "--quiet", "--set", "seed=none") == 2
    assert "".join(capfd.readouterr()).startswith("orch: ")


@pytest.mark.usefixtures("whole")
def test_json_is_alone_on_standard_output(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    draw_only(monkeypatch)
    assert here(place, "--json") == 0
    told = capfd.readouterr()
    printed = json.loads(told.out)
    assert printed == json.loads((place / "few" / "result.json").read_text()) | {"tracking": printed["tracking"]}
    assert "summing up" in told.err
