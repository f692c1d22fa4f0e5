"""Where addresses lead, as permissions name it, and what a file system sends there unasked."""

from __future__ import annotations

from audits.addresses import on_this_machine, place_of, remote, sent_to
from audits.credentials import mask, unusable_by
from tests.cases.families import as_one


@as_one(
    "address, place, sent",
    [
        ("https://Models.example.org/predict?x=1", "models.example.org", ""),
        ("https://models.example.org:443/", "models.example.org", ""),
        ("http://tracker", "tracker:80", ""),
        ("http://tracker:443", "tracker:443", ""),
        ("https://me:word@host:8443", "host:8443", ""),
        ("http://good@evil.example/", "evil.example:80", ""),
        ("http://[::1]:5000/x", "[::1]:5000", ""),
        ("s3://bucket/folder?region=eu-central-1", "s3://bucket", ""),
        ("s3://bucket/x?endpoint_override=Author.example:9000&scheme=http", "author.example:9000", "aws-keys"),
        ("s3://bucket/x?endpoint_override=author.example&scheme=HTTP", "author.example:80", "aws-keys"),
        ("s3://bucket/x?endpoint_override=[::1]&scheme=http", "[::1]:80", "aws-keys"),
        ("s3://bucket/x?scheme=https", "s3://bucket", ""),
        ("s3://key:secret@bucket/x?endpoint_override=author.example", "author.example", ""),
        ("s3://:@bucket/x?endpoint_override=author.example", "author.example", "aws-keys"),
        ("gs://bucket/x?endpoint_override=author.example", "author.example", "google-login"),
        ("gs://anonymous@bucket/x?endpoint_override=author.example", "author.example", ""),
        ("abfs://box@account.dfs.core.windows.net/x", "abfs://box@account.dfs.core.windows.net", ""),
        ("abfs://box@dfs.author.example/x", "abfs://box@dfs.author.example", "azure-login"),
        ("hdfs://node:8020/x", "hdfs://node:8020", ""),
        ("postgresql://me:word@db:5432/runs", "postgresql://db:5432", ""),
        ("mysql+pymysql://db/runs", "mysql://db", ""),
    ],
)
def test_a_place_is_the_host_or_the_bucket(address: str, place: str, sent: str) -> None:
    shown = mask(address)
    assert (place_of(shown), sent_to(shown)) == (place, sent)


@as_one(
    "address, sent",
    [
        ("s3://bucket/x?endpoint_override=good&endpoint_override=author.example", "aws-keys"),
        ("s3://bucket/x?endpoint%5Foverride=author.example/x", "aws-keys"),
        ("s3://bucket/x?region=author.example/%23", "aws-keys"),
        ("s3://bucket/x?region=eu-central-1#&endpoint_override=author.example", "aws-keys"),
        ("s3://bucket/x?tls_verify_certificates=false", "aws-keys"),
        ("s3://bucket/x?scheme=http", "aws-keys"),
        ("gs://bucket/x?scheme=HTTP", "google-login"),
        ("abfs://box@account/x?blob_storage_authority=author.example", "azure-login"),
        ("postgresql://db/runs?host=author.example", ""),
        ("postgresql://db#x@author.example/runs", ""),
    ],
)
def test_what_may_lead_elsewhere_is_part_of_the_place(address: str, sent: str) -> None:
    assert (place_of(address), sent_to(address)) == (address, sent)


def test_an_encoded_name_of_an_option_is_the_option() -> None:
    address = "s3://bucket/x?endpoint%5Foverride=author.example"
    assert (place_of(address), sent_to(address)) == ("author.example", "aws-keys")


def test_files_of_this_machine_are_no_addresses() -> None:
    for text in ("/data/x", "folder:x", "file:///x", "parquet:file:///x", "sqlite:////x.db", "sqlite+pysqlite:///x"):
        assert remote(text) == ""
    assert remote("parquet:S3://bucket/x") == "S3://bucket/x"


def test_loopback_is_told_by_the_whole_host() -> None:
    assert all(map(on_this_machine, ("localhost", "127.0.0.1", "127.3.4.5", "::1")))
    assert not any(map(on_this_machine, ("localhost.example", "127.0.0.1.example", "0.0.0.0", "[", "host", "")))


def test_a_backslash_hides_no_host() -> None:
    assert unusable_by(mask("http://author.example\\@127.0.0.1/")), "urllib reads another host here than urllib3"
