"""One kept-alive HTTP connection to an endpoint: a request goes out, a reply of bounded size and time comes back."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from urllib.parse import SplitResult, urljoin, urlsplit

from audits.credentials import hide, mask
from audits.errors import BadInput
from audits.queries.served.endpoint import Endpoint
from audits.queries.served.patience import Unanswered, retry_after

PASSING = (408, 425, 429, 500, 502, 503, 504)
MOVED = (307, 308)
REDIRECTS = 3
PIECE = 2**16
WORDS = 120
"""Characters of a server's own words that a message quotes."""


class Connection:
    """Posts requests to an endpoint. Raises Unanswered for what may pass, BadInput for what will not."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.place = endpoint, endpoint.url
        address = endpoint.address()
        self.origin = origin(address)
        self.path = address._replace(scheme="", netloc="", fragment="").geturl() or "/"
        self.answered = self.reused = False
        self._open: http.client.HTTPConnection | None = None
        self._context = self._trust() if address.scheme == "https" else None

    def post(self, body: bytes, inputs: int) -> bytes:
        """Return the reply to ``body``, a request of ``inputs`` inputs."""
        path = self.path
        for _ in range(1 + REDIRECTS):
            status, headers, reply = self._once(path, body)
            if status == 200:
                self.answered = True
                return reply
            if status in PASSING:
                wait = retry_after(headers.get("Retry-After"), time.time())
                raise Unanswered(f"HTTP {status}{quoted(reply)}", wait)
            if status not in MOVED:
                break
            path = self._moved(status, headers.get("Location", ""), path)
        else:
            raise BadInput(f"{self.place} redirects {REDIRECTS + 1} times; give the address that answers")
        raise BadInput(f"{self.place} answered HTTP {status}{self._advice(status, inputs)}{quoted(reply)}")

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._open is not None:
            self._open.close()
        self._open, self.reused = None, False

    def _once(self, path: str, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Make one request; a kept-alive connection that the server has closed meanwhile is opened again, once."""
        headers = self.endpoint.headers()
        reused = self.reused
        try:
            return self._exchange(path, body, headers)
        except (ConnectionError, http.client.HTTPException, OSError) as error:
            self.close()
            if reused and isinstance(error, ConnectionError):
                return self._once(path, body)
            raise self._explained(error) from error
        except BaseException:
            self.close()
            raise

    def _exchange(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, http.client.HTTPMessage, bytes]:
        end = time.monotonic() + self.endpoint.timeout
        if self._open is None:
            self._open = self._connection()
            self._open.connect()
        with cut_at(end, self._open.sock):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a server may refuse before it read all
                self._open.request("POST", path, body, headers)
            response = self._open.getresponse()
            found = self._body(response)
        self.reused = not response.will_close
        response.close()
        if not self.reused:
            self.close()
        return response.status, response.headers, found

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        """Return the bytes of a reply, up to what the endpoint allows."""
        if (packed := response.headers.get("Content-Encoding", "identity")) != "identity":
            raise BadInput(f"{self.place} answered in the encoding {packed[:WORDS]!r}, which was not asked for")
        found, size = [], 0
        while piece := response.read1(PIECE):
            found.append(piece)
            size += len(piece)
            if size > self.endpoint.largest:
                raise BadInput(f"{self.place} answered more than {self.endpoint.largest} bytes; lower batch")
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(found)

    def _connection(self) -> http.client.HTTPConnection:
        _, host, port = self.origin
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=self.endpoint.timeout)
        return http.client.HTTPSConnection(host, port, timeout=self.endpoint.timeout, context=self._context)

    def _trust(self) -> ssl.SSLContext:
        file = self.endpoint.ca_file
        try:
            return ssl.create_default_context(cafile=file or None)
        except OSError as error:
            raise BadInput(f"ca_file {file!r} cannot be read: {error.strerror or error}; give a PEM file") from error

    def _moved(self, status: int, location: str, path: str) -> str:
        """Return the path that the same server redirects to; another server is refused."""
        found = urlsplit(urljoin(urljoin(self.endpoint.address().geturl(), path), location))
        if origin(found) != self.origin:
            raise BadInput(
                f"{self.place} redirects (HTTP {status}) to {mask(found.geturl())!r}, another server, which is not "
                "asked; give that address if it is meant"
            )
        return found._replace(scheme="", netloc="", fragment="").geturl() or "/"

    def _explained(self, error: Exception) -> Exception:
        """Return what a failed exchange means: something that may pass, or a setting that is wrong."""
        said = hide(str(error).strip() or type(error).__name__)[:WORDS]
        if isinstance(error, ssl.SSLCertVerificationError):
            return BadInput(
                f"the certificate of {self.place} is not trusted: {error.verify_message}; give ca_file, the "
                "certificates to trust"
            )
        if not self.answered and isinstance(error, socket.gaierror):
            return BadInput(f"the host of {self.place} is not known: {said}")
        if not self.answered and isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return BadInput(f"{self.place} does not speak TLS as expected: {said}")
        if isinstance(error, TimeoutError):
            return Unanswered(f"no reply within {self.endpoint.timeout:g} s")
        return Unanswered(f"{type(error).__name__}: {said}")

    def _advice(self, status: int, inputs: int) -> str:
        """Return what to do about a status that will not pass."""
        if status in (401, 403):
            env = self.endpoint.token_env
            return f": the token in {env} is not accepted" if env else ": it wants a token; see token_env"
        if 300 <= status < 400:
            return ", a redirect that would lose the request; give the address that answers"
        return {
            404: ": nothing is served at this path",
            405: ": this path takes no POST; see the path of the address",
            413: f": {inputs} inputs are too much for a request; lower batch",
        }.get(status, "")


@contextlib.contextmanager
def cut_at(end: float, connection: socket.socket) -> Iterator[None]:
    """Cut a connection at ``end`` (``time.monotonic``), whatever it is doing then, and raise TimeoutError.

    A socket's own timeout begins anew with every byte, so a server that drips bytes outlasts it.
    """
    passed = threading.Event()

    def cut() -> None:
        passed.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # one of TLS would forget its keys while it is read

    clock = threading.Timer(max(end - time.monotonic(), 0), cut)
    clock.daemon = True
    clock.start()
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if passed.is_set():
            raise TimeoutError("timed out") from error
        raise
    finally:
        clock.cancel()
    if passed.is_set():
        raise TimeoutError("timed out")


def origin(address: SplitResult) -> tuple[str, str, int]:
    """Return scheme, host and port of an address."""
    return address.scheme, address.hostname or "", address.port or (443 if address.scheme == "https" else 80)


def quoted(reply: bytes) -> str:
    """Return the first words of a server's reply in brackets, on one line and without secrets."""
    text = " ".join(hide(reply[: 20 * WORDS].decode("utf-8", "replace")).split())
    text = "".join(mark if mark.isprintable() else "?" for mark in text)
    return f" ({text[:WORDS]}{'…' if len(text) > WORDS else ''})" if text else ""
