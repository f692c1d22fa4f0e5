"""An S3 server on this machine, its client, and a proxy before it that fails as it is told to."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3

DROP = -1
"""In the place of a status: the connection is closed without an answer."""

Fault = Callable[[str, str], int | None]
"""Method and path of a request → the status that answers it, or None: it is passed on."""


def uri(server: str, bucket: str) -> str:
    return f"s3://key:secret@{bucket}/some/store?endpoint_override={server}&scheme=http&region=us-east-1"


def client(server: str):  # type: ignore[no-untyped-def]  # boto3 makes its clients' types while it runs
    return boto3.client(
        "s3",
        endpoint_url=f"http://{server}",
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )


def objects(server: str, bucket: str) -> list[str]:
    listed = client(server).list_objects_v2(Bucket=bucket).get("Contents", [])
    return [entry["Key"] for entry in listed if not entry["Key"].endswith("/")]


class Proxy(ThreadingHTTPServer):
    """Passes requests on to ``server`` unless ``fault`` says otherwise; ``seen`` are (method, path) of all."""

    daemon_threads = True

    def __init__(self, server: str, fault: Fault) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = server
        self.fault = fault
        self.seen: list[tuple[str, str]] = []

    @property
    def place(self) -> str:
        """host:port"""
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def answer(self) -> None:
        self.server.seen.append((self.command, self.path))
        body = self.body()
        status = self.server.fault(self.command, self.path)
        if status == DROP:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif status is not None:
            self.reply(status, b"", {})
        else:
            host, _, port = self.server.target.partition(":")
            upstream = http.client.HTTPConnection(host, int(port), timeout=60)
            upstream.request(self.command, self.path, body, dict(self.headers))
            response = upstream.getresponse()
            self.reply(response.status, response.read(), dict(response.getheaders()))
            upstream.close()

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

    def body(self) -> bytes:
        """Return the body as it was sent, with its chunks' own lines."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        read = b""
        while (size := self.rfile.readline()) != b"":
            read += size + self.rfile.read(int(size, 16) + 2)
            if int(size, 16) == 0:
                break
        return read

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        length = headers.get("Content-Length") or headers.get("content-length") or str(len(body))
        kept = ("content-type", "etag", "last-modified", "location", "x-amz-bucket-region")
        for name, value in headers.items():
            if name.lower() in kept:
                self.send_header(name, value)
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def proxy_before(server: str, fault: Fault) -> Iterator[Proxy]:
    """A running proxy."""
    proxy = Proxy(server, fault)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
