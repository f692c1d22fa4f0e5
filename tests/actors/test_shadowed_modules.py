"""A file of the user's that has the name of one of our packages is refused before workers import it."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.cluster import SOURCE_PACKAGES, connect
from actors.jobs import Workers
from audits.errors import BadInput

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
@pytest.mark.parametrize("name", SOURCE_PACKAGES)
def test_a_module_in_the_working_folder_that_would_be_taken_for_ours_is_named(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / form.format(name)
    file.parent.mkdir(exist_ok=True)
    file.touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as error, connect(Workers(1, storage=str(tmp_path / "ray"))):
        raise AssertionError
    assert str(error.value).startswith(f"{file} has the name of a part of orch")
    assert "rename it" in str(error.value)


@pytest.mark.parametrize("folder", [ROOT, ROOT / "docs"])
def test_a_checkout_and_folders_without_such_files_are_fine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.cluster._private_cluster", lambda *_: pytest.raises(ZeroDivisionError))
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # other tests of this process may have a cluster
    monkeypatch.chdir(folder)
    with connect(Workers(1)):
        raise ZeroDivisionError
