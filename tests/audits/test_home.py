"""The user's cache: in no working folder, which may be anybody's, but by the user's own word."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.home import user_cache


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
