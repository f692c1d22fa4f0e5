"""Components that installed packages offer: listed with their package, found late, refused one by one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audits.errors import BadInput
from audits.models import MODELS
from audits.own import sources
from audits.own.entry_points import offers
from orchestrator.cli.main import main
from orchestrator.engine.own_code import own_code
from orchestrator.kinds import KINDS, check_against_data, kind_named, open_design
from tests.cases.own_components import ENTRY_POINTS, edit, own_plan, write_metadata, write_package

NAMED: dict[str, Any] = {
    "data.name": "corners",
    "model": {"name": "small_net", "settings": {}},
    "unlearning": [{"method": "shrink"}],
    "audit.attacks": ["apollo", "margin"],
}


@pytest.fixture
def site(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages with one that offers a component of each sort."""
    place = tmp_path / "mine" / "site"
    write_package(place)
    write_metadata(place, ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(place))
    offers.cache_clear()
    yield place
    monkeypatch.undo()
    offers.cache_clear()


def test_all_are_listed_with_the_package_that_they_come_from(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for what, name, text in (
        ("models", "small_net", "Flatten, one hidden layer. [mine 1.0]"),
        ("data", "corners", "Noise around two corners, as images of 8×8. [mine 1.0]"),
        ("unlearners", "shrink", "Shrink the head. [mine 1.0]"),
        ("attacks", "margin", "apollo: The posterior of the true class at the point. [mine 1.0]"),
    ):
        assert main(["ls", what]) == 0
        out, err = capsys.readouterr()
        assert not err
        assert [line.split(maxsplit=1)[1] for line in out.splitlines() if line.split()[0] == name] == [text]


def test_a_plan_names_them_like_built_in_ones(site: Path, tmp_path: Path) -> None:
    plan = own_plan(tmp_path, **NAMED)
    check_against_data(plan)
    before = {(job.stage, job.label): job.key for job in open_design(plan).jobs()}
    assert {"mine.nets", "mine.scaling", "mine", "mine.forgetting", "mine.points"} <= set(
        own_code([plan.resolved()]).versions
    )
    assert own_code([plan.resolved()]).places == [], "what is installed does not travel"
    edit(site / "mine" / "rates.py", "1.0", "0.5")
    after = {(job.stage, job.label): job.key for job in open_design(own_plan(tmp_path, **NAMED)).jobs()}
    assert {place for place in before if before[place] != after[place]} == {
        (stage, "shrink") for stage in ("unlearn", "utility", "search", "score")
    }


def test_nothing_is_imported_before_a_name_is_looked_up(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["--help"]) == 0 and capsys.readouterr().out
    assert "small_net" in MODELS and "small_net" in list(MODELS)
    assert "mine" not in sys.modules
    assert MODELS["small_net"].__module__ in sys.modules and "mine" in sys.modules


@pytest.mark.long
def test_a_process_that_looks_no_name_up_imports_nothing(site: Path) -> None:
    """In short: the test above, in this process."""
    code = (
        "import sys; from orchestrator.cli.main import main; main(['--help']); from audits.models import MODELS; "
        "assert 'small_net' in MODELS; list(MODELS); print('mine' in sys.modules)"
    )
    path = ":".join((str(site), str(Path(__file__).resolve().parents[3])))
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_what_is_broken_or_clashes_costs_one_line_and_nothing_else(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_metadata(
        site,
        {
            "orch.models": {"absent": "mine.nothing:Net", "mlp": "mine.nets:SmallNet", "small_net": "mine.nets:Named"},
            "orch.kinds": {"gnq": "mine.nets:SmallNet", "odd": "mine.nets:SmallNet"},
        },
        "other",
    )
    offers.cache_clear()
    assert main(["ls", "models"]) == 0
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 3 and "absent of package other 1.0 cannot be loaded" in err
    assert "'mlp' of package other 1.0 is refused: it is the name of a built-in one" in err
    assert "'small_net' is offered by packages mine 1.0 and other 1.0" in err
    assert [line.split()[0] for line in out.splitlines()].count("mlp") == 1
    assert not MODELS.is_own("mlp")
    for name, says in (("absent", "No module named 'mine.nothing'"), ("small_net", "uninstall all but one")):
        with pytest.raises(BadInput, match=says):
            MODELS[name]
    assert main(["ls", "audits"]) == 0
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 2 and "audit odd of package other 1.0 is no Kind" in err
    assert len([line for line in out.splitlines() if line[0] != " "]) == len(KINDS)


def test_a_kind_of_audits_can_be_offered(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_noted", dict(sources._noted))  # or the toy kind is forgotten, under its other tests
    write_metadata(site, {"orch.kinds": {"toy": "tests.orchestrator.toy.kind:KIND"}}, "toys")
    offers.cache_clear()
    assert kind_named("toy").name == "toy"
    assert main(["ls", "audits"]) == 0
    assert "[toys 1.0]" in capsys.readouterr().out
