"""Every table of components: filled by its package, one name one component, unknown names explained."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audits.apollo.attacks import ATTACKS as APOLLO
from audits.apollo.evidence import KINDS
from audits.data.source import CATALOGUE
from audits.errors import BadInput
from audits.gnq.attacks import POOL_ATTACKS
from audits.gradients.layers import LAYERS
from audits.models import MODELS
from audits.registry import Registry
from audits.tmia.attacks import ATTACKS as TMIA
from audits.tmia.selectors import SELECTORS
from audits.training.engines.base import ENGINES
from audits.uniqueness.rankings import RANKINGS
from audits.unlearning import UNLEARNERS
from tests.cases.families import as_one
from tune_spaces import SWEEPS

ROOT = Path(__file__).resolve().parent.parent.parent
REGISTRIES: tuple[Registry[Any], ...] = (
    APOLLO,
    CATALOGUE,
    ENGINES,
    KINDS,
    LAYERS,
    MODELS,
    POOL_ATTACKS,
    RANKINGS,
    SELECTORS,
    SWEEPS,
    TMIA,
    UNLEARNERS,
)


def package(table: Registry[Any]) -> str:
    return table.package


@as_one("table", REGISTRIES)
def test_a_component_knows_its_name_and_says_in_a_sentence_what_it_is(table: Registry[Any]) -> None:
    for name in table:
        entry = table[name]
        if table is SWEEPS:
            assert entry.name == name and entry.title
        elif table is CATALOGUE:
            assert entry.form.startswith(name) and entry.description, name
        else:
            assert ((entry.__doc__ or "").strip().partition("\n\n")[0]).endswith((".", ":")), name
            if isinstance(entry, type):
                assert entry.name == name
                assert entry.__module__.startswith(f"{table.package}."), name


@as_one("table", REGISTRIES)
def test_names_are_sorted_and_counted(table: Registry[Any]) -> None:
    assert list(table) == sorted(table) and len(table) == len(set(table)) > 0
    assert all(name in table for name in table)
    assert "no such name" not in table and None not in table


@as_one("table", REGISTRIES)
def test_a_name_is_given_once(table: Registry[Any]) -> None:
    taken = next(iter(table))
    with pytest.raises(RuntimeError, match=f"{table.kind} '{taken}' is registered twice"):
        table.register(taken)(object())


@as_one("table", REGISTRIES)
def test_an_unknown_name_is_answered_with_a_close_match_and_all_names(table: Registry[Any]) -> None:
    known = max(table, key=len)
    with pytest.raises(BadInput, match=f"unknown {table.kind} ") as caught:
        table[f"{known}x"]
    assert f"did you mean '{known}'?" in str(caught.value) and ", ".join(table) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package ``planted_parts`` with a table and two components; the second looks the first one up."""
    folder = tmp_path / "planted_parts"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "base.py").write_text(
        "from audits.registry import Registry\nPARTS = Registry('part', 'planted_parts')\nREAD = []\n"
    )
    file = "from planted_parts.base import PARTS, READ\nREAD.append(__name__)\n"
    file += "@PARTS.register('{0}')\nclass It:\n    {1}\n"
    (folder / "second.py").write_text(file.format("two", "other = PARTS['one']"))
    (folder / "first.py").write_text(file.format("one", "'''The first.'''"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("planted_parts")]:
        del sys.modules[name]


def test_a_file_in_the_package_is_a_component_found_at_the_first_look_up(parts: Path) -> None:
    base = pkgutil.resolve_name("planted_parts.base")
    assert base.READ == []
    assert list(base.PARTS) == ["one", "two"]
    assert base.READ == ["planted_parts.first", "planted_parts.second"]
    one, two = base.PARTS["one"], base.PARTS["two"]
    assert (one.name, two.name, two.other) == ("one", "two", one)


def test_a_file_that_cannot_be_imported_is_no_silent_gap(parts: Path) -> None:
    (parts / "third.py").write_text("import no_such_module_anywhere\n")
    table = pkgutil.resolve_name("planted_parts.base:PARTS")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
            list(table)


def test_a_component_that_was_imported_by_itself_is_in_the_table_once() -> None:
    code = "import audits.mia.attacks.loss as own; from audits.mia.attacks import MIA_ATTACKS as all; "
    code += "assert all['loss'] is own.LossThreshold and len(all) > 5"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
