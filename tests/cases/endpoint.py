"""A JSON endpoint on loopback that serves a model and fails as it is told to."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

Model = Callable[[torch.Tensor], torch.Tensor]
Fault = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers a POST with the model's outputs, unless a fault is due."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers), json.loads(body)))
        fault = next(self.server.faults, None)
        if fault is not None:
            return fault(self)
        inputs = json.loads(body)["inputs"]
        with torch.no_grad():
            outputs = self.server.model(torch.tensor(inputs, dtype=torch.float32))
        self.server.served += len(inputs)
        self.reply(200, {"predictions": self.server.shown(outputs)})

    def reply(self, status: int, document: Any, **headers: str) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """``shown`` turns outputs into what is answered; ``faults`` take the place of the first answers."""

    daemon_threads = False  # the end of the server waits for them
    allow_reuse_address = True

    def __init__(self, model: Model, shown: Callable[[torch.Tensor], Any], faults: Iterable[Fault | None], port: int):
        super().__init__(("127.0.0.1", port), Handler)
        self.model, self.shown, self.faults = model, shown, iter(faults)
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.sockets: list[socket.socket] = []
        self.served = 0
        self.url = f"http://127.0.0.1:{self.server_port}/invocations"

    def get_request(self) -> tuple[socket.socket, Any]:
        found = super().get_request()
        self.sockets.append(found[0])
        return found

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def serving(
    model: Model,
    shown: Callable[[torch.Tensor], Any] = torch.Tensor.tolist,
    faults: Iterable[Fault | None] = (),
    port: int = 0,
    certificate: ssl.SSLContext | None = None,
) -> Iterator[Server]:
    """Serve ``model`` in a thread."""
    server = Server(model, shown, faults, port)
    if certificate is not None:
        server.socket = certificate.wrap_socket(server.socket, server_side=True)
        server.url = server.url.replace("http://127.0.0.1", "https://localhost")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        for connection in server.sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()
        thread.join()


def status(code: int, document: Any = "no", **headers: str) -> Fault:
    """Return a fault that answers with a status."""
    return lambda handler: handler.reply(code, document, **headers)


def hang_up(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def cut_short(handler: Handler) -> None:
    """Promise more bytes than come."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"predictions": [')
    handler.close_connection = True
