"""An S3 server for the tests of the store, and a bucket for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto.server import ThreadedMotoServer

from tests.orchestrator.engine.store.s3_server import client


@pytest.fixture(scope="package")
def server() -> Iterator[str]:
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    yield f"{host}:{port}"
    moto.stop()


@pytest.fixture
def bucket(server: str, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:60].strip("-").lower()
    client(server).create_bucket(Bucket=name)
    return name
