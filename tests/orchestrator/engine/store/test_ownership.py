"""A store of somebody else, or one that others can write into, is refused until the user has allowed it."""

from __future__ import annotations

import grp
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from audits import owners
from audits.errors import BadInput
from orchestrator.cli.main import BAD_INPUT, DONE, main
from orchestrator.engine.jobs.keys import artefact_key
from orchestrator.engine.run.trusted import TrustedContexts
from orchestrator.engine.store import rooted
from orchestrator.engine.store.payloads import pack_json
from orchestrator.engine.store.store import Store
from orchestrator.engine.store.trust import Trust
from orchestrator.kinds import kind_named, load_plan
from tests.cases.runs import audited
from tests.cases.smallest_plans import MIA
from tests.orchestrator.engine.store.refusals import refused

DOCUMENT = {"seed": 7}
KEY = artefact_key("score", DOCUMENT)
FILES = {"metrics.json": pack_json({"accuracy": 0.5})}
SOMEBODY = 54321
PLACES = ["", "score", f"score/{KEY[:2]}", f"score/{KEY[:2]}/{KEY}", f"score/{KEY[:2]}/{KEY}/manifest.json"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.delenv("ORCH_ALLOW_STORES", raising=False)
    made = Store(str(tmp_path / "store"))
    made.put("score", KEY, DOCUMENT, FILES)
    return Store(made.uri)


@pytest.fixture
def somebodys(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give a file or a folder of the store to another user; all of it where this process may not."""

    def give(path: str) -> None:
        if os.geteuid() == 0:
            os.chown(Path(store.uri, path), SOMEBODY, -1)
        else:
            monkeypatch.setattr(rooted.os, "geteuid", lambda: SOMEBODY)

    return give


@pytest.mark.parametrize("place", PLACES)
def test_what_belongs_to_another_user_is_refused(
    store: Store, somebodys: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    somebodys(place)
    text = refused(lambda: Store(store.uri).get("score", KEY))
    assert f"ORCH_ALLOW_STORES={store.uri}" in text
    monkeypatch.setenv("ORCH_ALLOW_STORES", f"/elsewhere:{store.uri}")
    assert Store(store.uri).get("score", KEY).read("metrics.json") == FILES["metrics.json"]
    monkeypatch.setenv("ORCH_ALLOW_STORES", "/elsewhere")
    refused(lambda: Store(store.uri).get("score", KEY))


def test_neither_is_it_written_nor_listed_nor_cleaned(store: Store, somebodys: Callable[[str], None]) -> None:
    somebodys("")
    for act in (
        lambda: store.put("score", KEY, DOCUMENT, {}),
        lambda: store.keys("score"),
        store.stages,
        store.runs,
        lambda: store.drop("score", KEY),
        lambda: store.record_run("demo", {}, {}),
    ):
        refused(act)
    assert main(["cache", "gc", "--store", store.uri]) == BAD_INPUT
    assert (Path(store.uri) / PLACES[-1]).exists()


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o1777, 0o703])
def test_a_store_into_which_everybody_can_write_is_refused(store: Store, mode: int) -> None:
    os.chmod(store.uri, mode)
    text = refused(lambda: store.get("score", KEY))
    assert "chmod" in text
    assert f"ORCH_ALLOW_STORES={store.uri}" in text


def test_so_is_a_part_of_it_unless_nobody_else_can_enter_the_store(store: Store) -> None:
    os.chmod(Path(store.uri) / "score", 0o777)
    assert stat.S_IMODE(os.stat(store.uri).st_mode) == 0o700
    assert store.get("score", KEY).read("metrics.json") == FILES["metrics.json"]
    os.chmod(store.uri, 0o755)
    assert "score" in refused(lambda: store.get("score", KEY))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to a group of which it is not")
def test_a_group_that_can_write_into_it_needs_the_users_word(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(store.uri, -1, SOMEBODY)
    os.chmod(store.uri, 0o2770)
    refused(lambda: store.get("score", KEY))
    monkeypatch.setenv("ORCH_ALLOW_STORES", store.uri)
    assert Store(store.uri).get("score", KEY).files
    os.chmod(store.uri, 0o750)
    monkeypatch.delenv("ORCH_ALLOW_STORES")
    assert Store(store.uri).get("score", KEY).files


def test_the_users_own_group_is_nobody_else(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on systems where each user has a group of the same name, and files are made with umask 002."""
    mine = os.stat(store.uri).st_gid
    os.chmod(store.uri, 0o775)
    monkeypatch.setattr(owners, "own_group", lambda: mine)
    assert store.get("score", KEY).files
    monkeypatch.setattr(owners, "own_group", lambda: -1)
    refused(lambda: store.get("score", KEY))


def test_a_group_with_other_members_is_not_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    user = owners.pwd.getpwuid(os.geteuid())
    for members, name, expected in (([], user.pw_name, user.pw_gid), (["eve"], user.pw_name, -1), ([], "staff", -1)):
        entry = grp.struct_group((name, "x", user.pw_gid, members))
        monkeypatch.setattr(owners.grp, "getgrgid", lambda gid, entry=entry: entry)
        owners.own_group.cache_clear()
        assert owners.own_group() == expected
    owners.own_group.cache_clear()


def test_what_the_ordinary_user_has_is_never_refused(tmp_path: Path) -> None:
    for umask in (0o022, 0o027, 0o077):
        before = os.umask(umask)
        try:
            store = Store(tmp_path / f"store-{umask}")
            store.put("score", KEY, DOCUMENT, FILES)
            (tmp_path / f"own-{umask}").mkdir()
            own = Store(tmp_path / f"own-{umask}")
            own.put("score", KEY, DOCUMENT, FILES)
        finally:
            os.umask(before)
        assert store.get("score", KEY).files == own.get("score", KEY).files


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to a group of which it is not")
@pytest.mark.parametrize("mode", [0o755, 0o2755, 0o750])
def test_a_folder_of_another_group_made_beforehand_serves_under_every_umask(tmp_path: Path, mode: int) -> None:
    """What was made in it with the group's right to write would be refused by the next command."""
    root = tmp_path / "store"
    root.mkdir()
    os.chown(root, -1, SOMEBODY)
    root.chmod(mode)
    before = os.umask(0o002)
    try:
        Store(root).put("score", KEY, DOCUMENT, FILES)
        Store(root).record_run("demo", {}, {})
    finally:
        os.umask(before)
    assert Store(root).get("score", KEY).read("metrics.json") == FILES["metrics.json"]
    assert Store(root).runs()
    assert not any(path.stat().st_mode & 0o022 for path in root.rglob("*"))


def test_in_a_store_that_is_shared_on_purpose_the_umask_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    root.mkdir(mode=0o770)
    root.chmod(0o770)
    monkeypatch.setenv("ORCH_ALLOW_STORES", str(root))
    before = os.umask(0o002)
    try:
        Store(root).put("score", KEY, DOCUMENT, FILES)
    finally:
        os.umask(before)
    assert all(path.stat().st_mode & 0o020 for path in root.rglob("*"))


def test_a_word_for_all_stores_is_a_star_and_relative_paths_are_none(
    store: Store, somebodys: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    somebodys("")
    monkeypatch.setenv("ORCH_ALLOW_STORES", "*")
    assert Store(store.uri).stages() == ["score"]
    for word in ("store", "./store", ".orch/store"):
        monkeypatch.setenv("ORCH_ALLOW_STORES", word)
        with pytest.raises(BadInput, match=r"^ORCH_ALLOW_STORES: .*absolute") as error:
            Store(store.uri).stages()
        assert "\n" not in str(error.value)


def test_permission_travels_to_workers_and_stands_in_no_plan(
    store: Store, somebodys: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    somebodys("")
    monkeypatch.setenv("ORCH_ALLOW_STORES", store.uri)
    allowed = pickle.dumps(Store(store.uri))
    contexts = pickle.dumps(TrustedContexts(kind_named("apollo"), {}, store.uri, "cpu", ""))
    monkeypatch.delenv("ORCH_ALLOW_STORES")
    assert pickle.loads(allowed).stages() == ["score"]
    assert pickle.loads(contexts).trust == Trust((store.uri,))
    refused(lambda: Store(store.uri).stages())


def test_the_command_line_refuses_and_the_variable_allows(
    store: Store,
    somebodys: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    somebodys("")
    assert main(["cache", "ls", "--store", store.uri]) == BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert f"ORCH_ALLOW_STORES={store.uri}" in line
    assert main(["doctor", "--store", store.uri]) != DONE
    assert f"ORCH_ALLOW_STORES={store.uri}" in capsys.readouterr().out
    monkeypatch.setenv("ORCH_ALLOW_STORES", store.uri)
    assert main(["cache", "ls", "--store", store.uri]) == DONE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_plans_and_folders_of_another_user_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a CI the checkout often belongs to another user than the job."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)
    assert main(["cp", "mia-smoke", "mine.yaml"]) == DONE
    for place in (tmp_path, tmp_path / "mine.yaml"):
        os.chown(place, SOMEBODY, -1)
        os.chmod(place, 0o777)
    assert main(["validate", "mine.yaml"]) == DONE
    audited(load_plan("mine.yaml", values={**MIA, "audit.attacks": ["loss"], "compute.workers": 0}), Path("out"))
    assert os.stat(tmp_path / ".orch" / "store").st_mode & 0o777 == 0o700


def test_a_run_ends_before_it_does_anything(tmp_path: Path, store: Store, somebodys: Callable[[str], None]) -> None:
    somebodys("")
    plan = load_plan("apollo-smoke", values={"compute.workers": 0, "compute.store": store.uri})
    refused(lambda: audited(plan, tmp_path / "out"))
    assert sorted(os.listdir(store.uri)) == ["score"]
