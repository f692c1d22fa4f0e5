"""Credentials in addresses: masked in every text that is kept, known only to this process and those it tells."""

from __future__ import annotations

import re

import pytest

from audits import credentials
from audits.credentials import hide, is_masked, mask, remember, remembered, reveal, unusable_by, without_mask
from audits.data.catalogue import load
from audits.errors import BadInput

SECRET = "wJalrXUtnFEMI"


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin with nothing remembered."""
    monkeypatch.setattr(credentials, "_real", {})
    monkeypatch.setattr(credentials, "_secrets", set())


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (f"s3://AKIA123:{SECRET}@bucket/some/store?region=x", "s3://***@bucket/some/store?region=x"),
        (f"parquet:s3://AKIA123:{SECRET}@bucket/points", "parquet:s3://***@bucket/points"),
        (f"http://me:{SECRET}@tracker:5000/path", "http://***@tracker:5000/path"),
        (f"https://{SECRET}@tracker", "https://***@tracker"),
        (f"postgresql+psycopg2://me:{SECRET}@db/x", "postgresql+psycopg2://***@db/x"),
        (f"abfs://points:{SECRET}@account.dfs.core.windows.net/x", "abfs://points:***@account.dfs.core.windows.net/x"),
        (f"s3://bucket/x?secret_key={SECRET}&region=x", "s3://bucket/x?secret_key=***&region=x"),
        (f"https://host/x?se=1&sig={SECRET}#end", "https://host/x?se=1&sig=***#end"),
        (f"https://host/x?X-Amz-Signature={SECRET}", "https://host/x?X-Amz-Signature=***"),
        (f"mssql+pyodbc:///?odbc_connect=DRIVER;PWD={SECRET}", "mssql+pyodbc:///?odbc_connect=***;PWD=***"),
        (f"s3://AKIA123:{SECRET}/with/slashes@bucket/x", "s3://***@bucket/x"),
        (f"http://me:pass {SECRET}@host/x", "http://***@host/x"),
    ],
)
def test_credentials_are_masked_and_come_back(given: str, shown: str) -> None:
    assert mask(given) == shown
    assert mask(shown) == shown
    assert SECRET not in hide(f"cannot open '{given}': no such place")
    if "/with/" in given or " " in given:
        with pytest.raises(BadInput, match="write / as %2F") as caught:
            reveal(shown)
        assert SECRET not in str(caught.value)
    else:
        assert reveal(shown) == given


@pytest.mark.parametrize(
    "plain",
    [
        "fashion14",
        "folder:me@home?size=8",
        "s3://bucket/me@example.org/x",
        "http://host:5000/me@example.org",
        "gs://anonymous@bucket/x",
        "abfs://points@account.dfs.core.windows.net/x",
        "postgresql://me@db/x",
        "sqlite:////folder/mlflow.db",
        "s3://bucket/x?region=us-east-1&endpoint_override=host:9000",
    ],
)
def test_addresses_without_secrets_stay_as_they_are(plain: str) -> None:
    assert mask(plain) == plain
    assert reveal(plain) == plain
    assert not is_masked(plain) and not unusable_by(plain)
    assert remembered() == {}


def test_long_texts_take_no_longer_than_their_length() -> None:
    for text in ("a" * 10**6, "s3://" + "?key" * 10**5, "?" + "key" * 10**5 + "://x", "x://a:" + "@" * 10**5):
        assert hide(mask(text))


def test_nested_values_are_masked_and_the_last_credentials_count() -> None:
    plan = {"compute": {"store": "s3://a:old@bucket"}, "list": ["s3://a:new@bucket", 3], "s3://a:key@b": 1}
    assert mask(plan) == {
        "compute": {"store": "s3://***@bucket"},
        "list": ["s3://***@bucket", 3],
        "s3://***@b": 1,
    }
    assert reveal("s3://***@bucket") == "s3://a:new@bucket"


def test_another_process_knows_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = mask(f"s3://a:{SECRET}@bucket/x")
    told = remembered()
    monkeypatch.setattr(credentials, "_real", {})
    assert unusable_by(shown) == credentials.UNKNOWN
    with pytest.raises(BadInput, match=r"\*\*\*@bucket/x.*give the address again.*environment"):
        reveal(shown)
    remember(told)
    assert reveal(shown) == f"s3://a:{SECRET}@bucket/x"


def test_other_libraries_cannot_show_a_secret_in_any_of_its_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    mask("s3://key:se%2Fcr%2Bet@bucket")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "open sesame")
    text = hide("bad port 'se/cr+et' of se%2Fcr%2Bet, se%2Fcr+et; open sesame; see https://me:other@host/x")
    assert not re.search(r"se.{1,3}cr|sesame|other", text)
    assert text.startswith("bad port '***' of ")


def test_a_place_that_cannot_be_opened_is_told_without_its_secret() -> None:
    for name in (f"parquet:s4://key:{SECRET}@bucket/x", f"parquet:s3://key:{SECRET}@bucket/x?nonsense=1"):
        with pytest.raises(BadInput) as caught:
            load(name)
        assert SECRET not in str(caught.value) and "***@bucket/x" in str(caught.value)


def test_with_the_mask_left_out_an_address_is_the_one_without_credentials() -> None:
    assert without_mask(mask("parquet:s3://key:secret@bucket/x")) == "parquet:s3://bucket/x"
