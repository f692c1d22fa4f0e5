"""Where this user's cache is: never in the working folder, which may be anybody's."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.home import user_cache
from audits.own.libraries import COMPILED, keep_compiled_code_apart


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/orch"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/var/cache/me"}, "/var/cache/me/orch"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "cache"}, "/home/me/.cache/orch"),
        ({"HOME": "somewhere", "XDG_CACHE_HOME": ""}, None),
        ({"HOME": "/home/me", "ORCH_CACHE": "/srv/cache"}, "/srv/cache"),
        ({"HOME": "/home/me", "ORCH_CACHE": "~/mine"}, "/home/me/mine"),
        ({"HOME": "/home/me", "ORCH_CACHE": "mine"}, "{here}/mine"),
        ({"HOME": "/home/me", "ORCH_CACHE": ""}, "/home/me/.cache/orch"),
    ],
)
def test_the_cache_is_named_by_the_user_alone(
    variables: dict[str, str], found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ORCH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_cache() == (None if found is None else Path(found.format(here=tmp_path)))


def test_what_torch_compiles_lies_in_it_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(COMPILED, "")
    monkeypatch.delenv(COMPILED)
    keep_compiled_code_apart()
    folder = tmp_path / "cache" / "torchinductor"
    assert folder.is_dir() and folder.stat().st_mode & 0o777 == 0o700
