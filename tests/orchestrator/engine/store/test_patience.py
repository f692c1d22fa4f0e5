"""A store that fails to answer for a while costs a pause; one that stays away costs a line, and nothing finished."""

from __future__ import annotations

import itertools
import pickle
import re

import numpy as np
import pytest

from audits.errors import BadInput
from orchestrator.cli import cache, diagnosis
from orchestrator.cli.main import BROKE, explained, main
from orchestrator.cli.session import Session
from orchestrator.engine.jobs.keys import artefact_key
from orchestrator.engine.store.faults import StoreSilent, StoreUnusable
from orchestrator.engine.store.patience import SHORT, Patience
from orchestrator.engine.store.payloads import pack_arrays, pack_json
from orchestrator.engine.store.store import Store
from tests.orchestrator.engine.store.s3_server import DROP, objects, proxy_before, uri

KEY = artefact_key("train", {"seed": 0})
FILES = {"metrics.json": pack_json({"accuracy": 0.5})}


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def patience(self, place: str = "s3://bucket/store") -> Patience:
        return Patience(place, clock=lambda: self.now, sleep=self.sleep)


def hurried(uri: str) -> tuple[Store, Time]:
    """A store whose pauses take no time."""
    store, time = Store(uri), Time()
    store.storage.patience = time.patience(store.storage.place)  # type: ignore[attr-defined]
    return store, time


@pytest.mark.parametrize("status", [503, DROP])
def test_every_request_is_made_again_until_the_store_answers(server: str, bucket: str, status: int) -> None:
    counts: dict[str, int] = {}

    def fault(method: str, path: str) -> int | None:
        counts[f"{method} {path}"] = counts.get(f"{method} {path}", 0) + 1
        return status if counts[f"{method} {path}"] <= 2 else None

    with proxy_before(server, fault) as proxy:
        store, time = hurried(uri(proxy.place, bucket))
        store.put("train", KEY, {"seed": 0}, FILES)
        assert store.has("train", KEY)
        assert store.keys("train") == {KEY}
        assert store.stages() == ["train"]
        store.verify("train", KEY)
        store.drop("train", KEY)
        assert not store.has("train", KEY)
    assert len(time.pauses) >= 10
    assert objects(server, bucket) == []


def test_pauses_grow_and_end_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()

    def request() -> None:
        raise OSError("AWS Error SLOW_DOWN during PutObject operation: msg\nmore")

    with pytest.raises(StoreSilent) as error:
        time.patience().ask(request)
    assert time.now == pytest.approx(60.0)
    assert len(time.pauses) < 30
    assert time.pauses[0] <= 0.2
    assert 4.0 <= max(time.pauses) <= 8.0
    assert str(error.value) == (
        "the store s3://bucket/store did not answer for 60 s: AWS Error SLOW_DOWN during PutObject operation: msg; "
        "nothing finished is lost; run the same command again"
    )
    assert not isinstance(error.value, BadInput)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    (record,) = caplog.records
    assert re.fullmatch(r"the store s3://bucket/store does not answer \(.*\); trying again for 5\d s", record.message)


def test_a_store_that_stays_away_ends_the_command_with_3(server: str, bucket: str) -> None:
    with proxy_before(server, lambda *_: 500) as proxy:
        store, _ = hurried(uri(proxy.place, bucket))
        with pytest.raises(StoreSilent) as error:
            store.put("train", KEY, {}, FILES)
    text, code = explained(error.value, Session())
    assert code == BROKE and text.startswith(f"the store s3://{bucket}/some/store did not answer for 60 s: ")
    assert "secret" not in str(error.value)


def test_commands_that_only_look_wait_for_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert SHORT <= 10.0
    for module in (cache, diagnosis):
        monkeypatch.setattr(module, "SHORT", 0.3)
    nowhere = uri("127.0.0.1:1", "bucket")
    assert main(["cache", "ls", "--store", nowhere]) == BROKE
    assert "did not answer for 0 s" in capsys.readouterr().err
    (finding,) = diagnosis.store_place(nowhere)
    assert finding.status == "FAIL"
    assert "did not answer for 0 s" in finding.found
    assert "--store" in finding.fix


@pytest.mark.parametrize(
    "text",
    [
        "AWS Error ACCESS_DENIED during PutObject operation: msg",
        "AWS Error NO_SUCH_BUCKET during PutObject operation: msg",
        "AWS Error UNKNOWN (HTTP status 301) during HeadObject operation: No response body.",
        "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 6, Couldn't resolve host name",
        "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 60, SSL peer certificate was not OK",
    ],
)
def test_what_the_user_must_change_is_said_at_once(text: str) -> None:
    time = Time()

    def request() -> None:
        raise OSError(text)

    with pytest.raises(OSError, match=re.escape(text)):
        time.patience().ask(request)
    assert time.pauses == []


def test_an_unknown_host_may_pass_once_the_store_has_answered() -> None:
    time = Time()
    patience = time.patience()
    patience.ask(lambda: None)
    answers = iter([OSError("AWS Error NETWORK_CONNECTION: curlCode: 6, Couldn't resolve host name"), None])

    def request() -> str:
        if error := next(answers):
            raise error
        return "there"

    assert patience.ask(request) == "there"


def test_denied_access_is_bad_input_at_the_first_request(server: str, bucket: str) -> None:
    with proxy_before(server, lambda *_: 403) as proxy:
        store, time = hurried(uri(proxy.place, bucket))
        with pytest.raises(StoreUnusable, match=r"cannot be written: .*ACCESS_DENIED"):
            store.put("train", KEY, {}, FILES)
        assert ({method for method, _ in proxy.seen}, len(proxy.seen), time.pauses) == ({"PUT"}, 1, [])


def test_one_attempt_is_one_request(server: str, bucket: str) -> None:
    with proxy_before(server, lambda *_: 500) as proxy:
        store, time = hurried(uri(proxy.place, bucket))
        with pytest.raises(StoreSilent):
            store.has("train", KEY)
        assert len(proxy.seen) == len(time.pauses) + 1


BIG = {"weights.safetensors": pack_arrays({"w": np.arange(3_000_000, dtype="f4")})}  # 12 MB


@pytest.mark.long
@pytest.mark.parametrize("broken", ["partNumber=2", "uploads"])
def test_a_large_file_that_breaks_off_is_put_again_whole(server: str, bucket: str, broken: str) -> None:
    """In short: ``test_every_request_is_made_again_until_the_store_answers``."""
    count = itertools.count()

    def fault(method: str, path: str) -> int | None:
        return 500 if broken in path and next(count) < 2 else None

    with proxy_before(server, fault) as proxy:
        store, time = hurried(uri(proxy.place, bucket))
        store.put("train", KEY, {}, BIG)
        store.verify("train", KEY)
        assert any("partNumber=2" in path for _, path in proxy.seen), "the file is not put in parts"
    assert time.pauses


@pytest.mark.long
def test_a_large_file_that_never_arrives_leaves_no_artefact(server: str, bucket: str) -> None:
    """In short: a large file that breaks off, and ``test_a_store_that_stays_away_ends_the_command_with_3``."""
    with proxy_before(server, lambda method, path: 503 if "partNumber=2" in path else None) as proxy:
        store, _ = hurried(uri(proxy.place, bucket))
        store.storage.patience.limit = 0.5  # type: ignore[attr-defined]
        with pytest.raises(StoreSilent):
            store.put("train", KEY, {}, BIG)
    assert store_at(server, bucket).keys("train") == set()
    assert objects(server, bucket) == []
    store_at(server, bucket).put("train", KEY, {}, BIG)
    store_at(server, bucket).verify("train", KEY)


def store_at(server: str, bucket: str) -> Store:
    return Store(uri(server, bucket))


def test_one_attempt_lasts_for_seconds_and_options_of_the_uri_hold(server: str) -> None:
    store = Store(f"{uri(server, 'some')}&allow_bucket_creation=true")
    _, (options,) = store.storage._files.__reduce__()  # type: ignore[attr-defined]  # pyarrow's file system
    assert (options["connect_timeout"], options["request_timeout"]) == (5.0, 15.0)
    assert (options["endpoint_override"], options["scheme"], options["region"]) == (server, "http", "us-east-1")
    assert (options["access_key"], options["secret_key"]) == ("key", "secret")
    assert options["allow_delayed_open"] and options["allow_bucket_creation"]
